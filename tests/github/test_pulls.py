"""Pull requests on our small GitHub: the commits it makes, and what happens to a pull request by git alone."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from github import GithubException

from tests.github.conftest import REPO
from tests.github.desk import Desk
from tests.github.hub import GitHub, RefusedCall
from tests.github.validating import Validating


def refused(call: Callable[[], object], status: int) -> str:
    """Return what is said when a call is refused with a status."""
    with pytest.raises(GithubException) as found:
        call()
    assert found.value.status == status
    return str(found.value.data)


def events(desk: Desk, number: int) -> list[tuple[str, str | None]]:
    """Return what happened to a pull request, with the commits."""
    return [(one.event, one.commit_id) for one in desk.api.get_issue(number).get_events()]


class TestOpening:
    def test_open_change_list(self, github: GitHub, ada: Desk) -> None:
        tip = ada.branch("gitbus/approve/a", {"a": "1\n"}, "two")
        pull = ada.api.create_pull(base="main", head="gitbus/approve/a", title="A", body="text")
        assert (pull.number, pull.head.sha, pull.commits, pull.changed_files) == (1, tip, 1, 1)
        assert pull.head.label == "acme:gitbus/approve/a"
        pull.edit(title="B", body="other")
        found = ada.api.get_pulls(state="open", head="acme:gitbus/approve/a", base="main")
        assert [(one.number, one.title, one.body) for one in found] == [(1, "B", "other")]
        assert [one.sha for one in pull.get_commits()] == [tip]
        assert [(one.filename, one.status, one.patch) for one in pull.get_files()] == [
            ("a", "added", "@@ -0,0 +1 @@\n+1")
        ]

    def test_only_one_for_a_branch(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        ada.api.create_pull(base="main", head="x", title="x", body="")
        said = refused(lambda: ada.api.create_pull(base="main", head="x", title="y", body=""), 422)
        assert "A pull request already exists for acme:x." in said

    def test_nothing_to_bring(self, github: GitHub, ada: Desk) -> None:
        ada.push("main:refs/heads/x")
        assert "No commits between main and x" in refused(
            lambda: ada.api.create_pull(base="main", head="x", title="x", body=""), 422
        )
        assert "invalid" in refused(
            lambda: ada.api.create_pull(base="main", head="no", title="x", body=""), 422
        )

    def test_from_a_fork(self, github: GitHub, ada: Desk, desk: Callable[..., Desk]) -> None:
        github.world.repos[REPO].roles["mallory"] = "read"
        github.fork(REPO, "mallory")
        away = desk("mallory", repo="mallory/bus")
        away.fetch()
        away.git("checkout", "-q", "-B", "main", "origin/main")
        tip = away.branch("gitbus/approve/a", {"a": "1\n"})
        number = github.browser("mallory").open(REPO, "mallory:gitbus/approve/a")
        pull = ada.api.get_pull(number)
        assert (pull.head.repo.full_name, pull.head.sha, pull.mergeable) == ("mallory/bus", tip, True)

    def test_who_opened_cannot_approve(self, github: GitHub, ada: Desk, validated: Validating) -> None:
        ada.branch("x", {"x": "1\n"})
        pull = ada.api.create_pull(base="main", head="x", title="x", body="")
        said = refused(lambda: pull.create_review(event="APPROVE", body="fine"), 422)
        assert "Can not approve your own pull request" in said
        with validated.off():  # GitHub says why, which it does not describe
            assert "cannot be requested" in refused(
                lambda: pull.create_review_request(reviewers=["ada"]), 422
            )


class TestMerging:
    def test_a_merge_is_signed_by_github(self, github: GitHub, ada: Desk) -> None:
        tip = ada.branch("x", {"x": "1\n"})
        base = ada.fetch()
        number = github.browser("ada").open(REPO, "x", "A title")
        sha = github.browser("bob").merge(REPO, number)
        commit = ada.api.get_commit(sha)
        assert commit.commit.message == f"Merge pull request #{number} from acme/x\n\nA title"
        assert [one.sha for one in commit.parents] == [base, tip]
        assert (commit.author.login, commit.committer.login) == ("bob", "web-flow")
        assert (commit.commit.committer.name, commit.commit.committer.email) == (
            "GitHub",
            "noreply@github.com",
        )
        proof = commit.commit.verification
        assert (proof.verified, proof.reason) == (True, "valid")
        assert ada.fetch() == sha
        text = ada.git("cat-file", "commit", sha)
        assert proof.signature.startswith("-----BEGIN ")
        assert "gpgsig" in text
        assert proof.payload == re.sub(r"gpgsig(.*\n )*.*\n", "", text)
        pull = ada.api.get_pull(number)
        assert (pull.merged, pull.merged_by.login, pull.merge_commit_sha, pull.state) == (
            True,
            "bob",
            sha,
            "closed",
        )
        assert events(ada, number) == [("merged", sha), ("closed", None)]
        assert [one.number for one in ada.api.get_commit(sha).get_pulls()] == [number]
        assert [one.number for one in ada.api.get_commit(tip).get_pulls()] == [number]

    def test_a_squash_is_the_openers_and_signed(self, github: GitHub, ada: Desk) -> None:
        ada.git("checkout", "-q", "-b", "x")
        ada.commit({"x": "1\n"}, "one\n\nwhy")
        ada.commit({"x": "2\n"}, "two")
        ada.push("x")
        base = ada.fetch()
        number = github.browser("ada").open(REPO, "x", "A title")
        sha = github.browser("bob").merge(REPO, number, "squash")
        commit = ada.api.get_commit(sha)
        assert commit.commit.message == f"A title (#{number})\n\n* one\n\nwhy\n\n* two"
        assert [one.sha for one in commit.parents] == [base]
        assert (commit.author.login, commit.committer.login) == ("ada", "web-flow")
        assert commit.commit.verification.verified
        assert ada.api.get_pull(number).merge_commit_sha == sha == ada.fetch()

    def test_a_rebase_is_signed_by_nobody(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"}, "mine")
        ada.commit({"y": "1\n"}, "meanwhile")
        ada.push("main")
        base = ada.fetch()
        number = github.browser("ada").open(REPO, "x")
        sha = github.browser("bob").merge(REPO, number, "rebase")
        commit = ada.api.get_commit(sha)
        assert (commit.commit.message.strip(), [one.sha for one in commit.parents]) == ("mine", [base])
        assert (commit.commit.author.name, commit.commit.committer.name) == ("Ada", "Bob")
        assert commit.commit.verification.reason == "unsigned"
        assert sorted(one.filename for one in commit.files) == ["x"]
        assert [one.number for one in commit.get_pulls()] == [number]

    def test_only_the_head_that_was_seen(self, github: GitHub, ada: Desk) -> None:
        old = ada.branch("x", {"x": "1\n"})
        pull = ada.api.create_pull(base="main", head="x", title="x", body="")
        ada.branch("x", {"x": "2\n"})
        assert "Head branch was modified" in refused(lambda: pull.merge(sha=old), 409)
        assert events(ada, pull.number) == [("head_ref_force_pushed", ada.fetch("x"))]
        assert pull.merge(sha=ada.fetch("x")).merged

    def test_a_conflict(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"readme.txt": "x\n"})
        ada.commit({"readme.txt": "main\n"})
        ada.push("main")
        number = github.browser("ada").open(REPO, "x")
        pull = ada.api.get_pull(number)
        assert (pull.mergeable, pull.mergeable_state) == (False, "dirty")
        assert "not mergeable" in refused(pull.merge, 405)
        assert not pull.update_branch()

    def test_a_method_that_is_not_allowed(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        github.browser("acme").ask("PATCH", f"/repos/{REPO}", {"allow_squash_merge": False})
        pull = ada.api.create_pull(base="main", head="x", title="x", body="")
        assert "Squash merges are not allowed" in refused(lambda: pull.merge(merge_method="squash"), 405)

    def test_the_branch_is_brought_up_to_date(self, github: GitHub, ada: Desk) -> None:
        tip = ada.branch("x", {"x": "1\n"})
        ada.commit({"y": "1\n"})
        ada.push("main")
        pull = ada.api.create_pull(base="main", head="x", title="x", body="")
        assert pull.update_branch()
        head = ada.api.get_commit(ada.fetch("x"))
        assert [one.sha for one in head.parents] == [tip, ada.fetch()]
        assert head.commit.message == "Merge branch 'main' into x"
        assert (head.committer.login, head.commit.verification.verified) == ("web-flow", True)

    def test_auto_merge_and_queue_leave_their_names(self, github: GitHub, ada: Desk) -> None:
        browser = github.browser("bob")
        for number, name in enumerate(("x", "y"), 1):
            ada.branch(name, {name: "1\n"})
            github.browser("ada").open(REPO, name)
            assert github.pull(REPO, number).head_ref == name
        browser.arm(REPO, 1)
        assert ada.api.get_pull(1).auto_merge["enabled_by"]["login"] == "bob"
        browser.fire(REPO, 1)
        browser.enqueue(REPO, 2)
        browser.dequeue(REPO, 2)
        assert [name for name, _ in events(ada, 1)] == ["auto_merge_enabled", "merged", "closed"]
        assert ada.api.get_pull(1).merged_by.login == "bob"
        queued = ["added_to_merge_queue", "removed_from_merge_queue", "merged", "closed"]
        assert [name for name, _ in events(ada, 2)] == queued
        merger = ada.api.get_pull(2).merged_by
        assert (merger.login, merger.type) == ("github-merge-queue[bot]", "Bot")


class TestByGit:
    def test_merged_by_a_push(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        number = github.browser("bob").open(REPO, "x")
        ada.git("merge", "-q", "--no-ff", "-m", "by hand", "x")
        ada.push("main")
        pull = ada.api.get_pull(number)
        sha = ada.git("rev-parse", "HEAD")
        assert (pull.merged, pull.merged_by.login, pull.merge_commit_sha) == (True, "ada", sha)
        assert ada.api.get_commit(sha).commit.verification.reason == "unsigned"
        assert events(ada, number) == [("merged", sha), ("closed", None)]

    def test_a_deleted_head_closes(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        number = github.browser("bob").open(REPO, "x")
        ada.push(":x")
        pull = ada.api.get_pull(number)
        assert (pull.state, pull.merged) == ("closed", False)
        assert events(ada, number) == [("closed", None), ("head_ref_deleted", None)]
        with pytest.raises(RefusedCall) as closed:
            github.browser("bob").reopen(REPO, number)
        assert closed.value.status == 422
        assert ada.git("ls-remote", "origin", f"refs/pull/{number}/head")

    def test_closed_reopened_retargeted(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        ada.push("main:refs/heads/other")
        number = github.browser("bob").open(REPO, "x")
        browser = github.browser("ada")
        browser.close(REPO, number)
        browser.reopen(REPO, number)
        browser.change(REPO, number, base="other")
        pull = ada.api.get_pull(number)
        assert (pull.state, pull.base.ref) == ("open", "other")
        assert [name for name, _ in events(ada, number)] == ["closed", "reopened", "base_ref_changed"]

    def test_an_edit_in_the_browser(self, github: GitHub, ada: Desk) -> None:
        tip = ada.branch("x", {"x": "1\n"})
        number = github.browser("ada").open(REPO, "x")
        sha = github.browser("bob").edit(REPO, "x", {"x": "2\n", "readme.txt": None}, "Update x")
        assert ada.api.get_pull(number).head.sha == sha == ada.fetch("x")
        commit = ada.api.get_commit(sha)
        assert ([one.sha for one in commit.parents], commit.author.login) == ([tip], "bob")
        assert (commit.committer.login, commit.commit.verification.verified) == ("web-flow", True)
        assert events(ada, number) == []

    def test_what_a_merge_closes(self, github: GitHub, ada: Desk) -> None:
        issues = [ada.api.create_issue(title).number for title in ("one", "two", "three")]
        ada.branch("x", {"x": "1\n"})
        body = f"Fixes #{issues[0]} and `closes #{issues[1]}`, not #{issues[2]}"
        number = github.browser("ada").open(REPO, "x", body=body)
        github.browser("bob").merge(REPO, number)
        assert [ada.api.get_issue(one).state for one in issues] == ["closed", "open", "open"]

    def test_who_is_told(self, github: GitHub, ada: Desk) -> None:
        body = "Hi @bob and @nobody, not `@rita` nor ada@acme.example\n\n```\n@rita\n```\n<!-- @rita -->"
        number = ada.api.create_issue("@rita", body=body).number
        ada.api.get_issue(number).create_comment("thanks @Acme")
        assert github.pinged == [("bob", f"{REPO}#{number}"), ("Acme", f"{REPO}#{number}")]

    def test_a_person_signs(self, github: GitHub, ada: Desk, tmp_path: Path) -> None:
        key = tmp_path / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        for name, value in (("gpg.format", "ssh"), ("user.signingkey", str(key)), ("commit.gpgsign", "true")):
            ada.git("config", name, value)
        first = ada.commit({"x": "1\n"})
        ada.push("main")
        assert ada.api.get_commit(first).commit.verification.reason == "unknown_key"
        github.world.users["ada"].signing_keys.append(key.with_suffix(".pub").read_text())
        second = ada.commit({"x": "2\n"})
        ada.git("config", "user.email", "bob@acme.example")
        third = ada.commit({"x": "3\n"})
        ada.push("main")
        proofs = [ada.api.get_commit(sha).commit.verification for sha in (second, third)]
        assert [(one.verified, one.reason) for one in proofs] == [(True, "valid"), (False, "bad_email")]

    def test_compare(self, github: GitHub, ada: Desk) -> None:
        ada.branch("x", {"x": "1\n"})
        ada.commit({"y": "1\n"})
        ada.push("main")
        found = ada.api.compare("main", "x")
        assert (found.status, found.ahead_by, found.behind_by) == ("diverged", 1, 1)
        assert [one.filename for one in found.files] == ["x"]
        assert ada.api.compare("main", "main").status == "identical"
