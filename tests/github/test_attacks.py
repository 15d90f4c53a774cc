"""What must not count on GitHub: every way in which a merge there is no approver's word, tried on a real bus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitbus import paths
from tests.github.hub import GitHub, RefusedCall
from tests.github.office import REPO, Office, git, make_office
from tests.support.world import ITEM

BRANCH = f"gitbus/approve/{ITEM}"


@pytest.fixture
def office(github: GitHub, tmp_path: Path) -> Office:
    """A bus that sends, with one item that waits."""
    office = make_office(github, tmp_path / "office", sending={"hold": "0s"})
    office.sending()
    office.item()
    return office


def refused(office: Office) -> set[str]:
    """Let the sender look, see that nothing leaves, and return by which rules."""
    said = {(one.reason or "").split(":")[0] for one in office.send() if one.outcome != "sent"}
    assert office.messages() == []
    return said


def demoted(office: Office) -> str:
    """Let the conductor look, and return where the item is then."""
    office.conduct()
    return office.state()


def by_hand(office: Office, who: str, *arguments: str) -> str:
    """Run git as somebody in his clone, the hub fetched."""
    place = office.clone(who, office.token(who))
    git(place, "fetch", "-q", "origin", "+refs/heads/*:refs/remotes/origin/*")
    return git(place, *arguments)


def push_merge(office: Office, who: str) -> None:
    """Merge the approval branch with git and push it, unsigned; GitHub calls the pull request merged then."""
    by_hand(office, who, "checkout", "-q", "-B", "work", "origin/main")
    by_hand(office, who, "merge", "-q", "--no-ff", "--no-edit", f"origin/{BRANCH}")
    by_hand(office, who, "push", "-q", "origin", "work:main")


def test_merged_indirectly_by_an_approvers_push(office: Office) -> None:
    push_merge(office, "ada")
    pull = office.github.pull(REPO, office.number())
    assert pull.merged is not None
    assert pull.merged_by == "ada"
    assert refused(office) == {"indirect-merge"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_merged_indirectly_by_the_conductor(office: Office) -> None:
    push_merge(office, "conductor")
    assert refused(office) <= {"indirect-merge", "merged-by-app"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_the_flip_itself_on_the_line_by_a_foxtrot_merge(office: Office) -> None:
    place = office.clone("conductor", office.token("conductor"))
    by_hand(office, "conductor", "checkout", "-q", "-B", "work", f"origin/{BRANCH}")
    git(place, "merge", "-q", "--no-edit", "-s", "ours", "origin/main")
    git(place, "push", "-q", "origin", "work:main")
    assert refused(office) == {"no-pull"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_merged_by_an_app(office: Office) -> None:
    with office.bus("conductor") as bus:
        bus.forge.acting.merge(paths.HEADS + BRANCH, office.refs()[paths.HEADS + BRANCH])  # type: ignore[union-attr]
    assert refused(office) == {"merged-by-app"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_merged_by_a_person_who_is_no_approver(office: Office) -> None:
    office.github.browser("rita").merge(REPO, office.number())
    assert refused(office) == {"wrong-role"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_merged_by_somebody_whom_the_bus_does_not_know(office: Office) -> None:
    office.github.world.repos[REPO].roles["mallory"] = "write"
    office.github.browser("mallory").merge(REPO, office.number())
    assert refused(office) == {"unknown-account"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_a_rebase_is_signed_by_nobody(office: Office) -> None:
    office.github.browser("ada").merge(REPO, office.number(), "rebase")
    assert refused(office) == {"indirect-merge"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_a_squash_that_github_signed_counts(office: Office) -> None:
    office.github.browser("ada").merge(REPO, office.number(), "squash")
    assert [one.outcome for one in office.send()] == ["sent"]
    assert office.findings() == []


@pytest.mark.long
def test_auto_merge(office: Office) -> None:
    ada, number = office.github.browser("ada"), office.number()
    ada.arm(REPO, number)
    ada.fire(REPO, number)
    assert refused(office) == {"automatic-merge"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_a_merge_queue(office: Office) -> None:
    ada, number = office.github.browser("ada"), office.number()
    ada.enqueue(REPO, number)
    ada.dequeue(REPO, number)
    assert refused(office) & {"automatic-merge", "merged-by-app", "indirect-merge"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_merged_from_a_fork(office: Office) -> None:
    ada = office.github.browser("ada")
    ada.close(REPO, office.number())
    office.github.fork(REPO, "ada")
    number = ada.open(REPO, f"ada:{BRANCH}")
    ada.merge(REPO, number)
    assert refused(office) == {"fork"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_a_pull_request_of_another_branch_that_holds_the_flip(office: Office) -> None:
    by_hand(office, "bob", "push", "-q", "origin", f"origin/{BRANCH}:refs/heads/innocent")
    ada = office.github.browser("ada")
    ada.close(REPO, office.number())
    ada.merge(REPO, ada.open(REPO, "innocent", "Fix a typing error"))
    assert refused(office) == {"not-named"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_retargeted_and_merged_elsewhere(office: Office) -> None:
    by_hand(office, "bob", "push", "-q", "origin", "origin/main:refs/heads/release")
    ada, number = office.github.browser("ada"), office.number()
    ada.change(REPO, number, base="release")
    ada.merge(REPO, number)
    by_hand(office, "bob", "checkout", "-q", "-B", "work", "origin/main")
    by_hand(office, "bob", "merge", "-q", "--ff-only", "origin/release")
    by_hand(office, "bob", "push", "-q", "origin", "work:main")
    assert refused(office) == {"wrong-branch"}


@pytest.mark.long
def test_self_approval_by_the_producer(github: GitHub, tmp_path: Path) -> None:
    office = make_office(github, tmp_path / "office", workers={"laptop": {"person": "ada"}})
    office.sending()
    office.item()
    office.github.browser("ada").merge(REPO, office.number())
    assert refused(office) == {"quorum"}
    assert demoted(office) == "awaiting_approval"
    office.github.browser("bob").merge(REPO, office.number())
    assert [one.outcome for one in office.send()] == ["sent"]


@pytest.mark.long
def test_changes_asked_for_after_the_merge(office: Office) -> None:
    number = office.number()
    office.github.browser("ada").merge(REPO, number)
    office.github.browser("rita").review(REPO, number, "REQUEST_CHANGES", "Stop!")
    assert refused(office) == {"standing-no"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_a_no_that_the_conductor_dismissed(office: Office) -> None:
    number = office.number()
    review = office.github.browser("rita").review(REPO, number, "REQUEST_CHANGES", "Stop!")
    with office.bus("conductor") as bus:
        client = bus.forge.pulls.client  # type: ignore[attr-defined]
        client.send(
            "PUT", f"/repos/{REPO}/pulls/{number}/reviews/{review}/dismissals", {"message": "nothing"}
        )
    office.github.browser("ada").merge(REPO, number)
    assert refused(office) == {"standing-no"}


@pytest.mark.long
def test_an_approver_who_was_removed_after_the_merge(office: Office) -> None:
    office.github.browser("bob").merge(REPO, office.number())
    with office.bus("ada") as ada:
        people = [one for one in ada.effective().bus.people if one.id != "bob"]
        ada.propose_config("people", [one.model_dump(mode="json", exclude_none=True) for one in people])
    office.conduct()
    office.github.browser("ada").merge(REPO, office.number("gitbus/decide/bus"))
    assert refused(office) == {"removed-since"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_the_bus_changed_in_the_approving_pull_request(office: Office) -> None:
    place = office.clone("conductor", office.token("conductor"))
    by_hand(office, "conductor", "checkout", "-q", "-B", "work", f"origin/{BRANCH}")
    text = (place / "bus.yaml").read_text("utf-8")
    (place / "bus.yaml").write_text(text.replace("login: rita", "login: rita "), "utf-8")
    (place / "notes.txt").write_text("x\n", "utf-8")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "more")
    git(place, "push", "-q", "origin", f"work:{BRANCH}")
    office.github.browser("ada").merge(REPO, office.number())
    assert refused(office) == {"merge-holds-more"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_a_forged_committer_is_not_github(office: Office) -> None:
    by_hand(office, "conductor", "checkout", "-q", "-B", "work", "origin/main")
    place = office.clone("conductor", office.token("conductor"))
    git(
        place,
        *("-c", "user.name=GitHub", "-c", "user.email=noreply@github.com"),
        *("merge", "-q", "--no-ff", "-m", f"Merge pull request #1 from acme/{BRANCH}", f"origin/{BRANCH}"),
    )
    git(place, "push", "-q", "origin", "work:main")
    assert refused(office) & {"indirect-merge", "merged-by-app"}
    assert demoted(office) == "awaiting_approval"


@pytest.mark.long
def test_turning_the_flag_on_takes_an_approver(github: GitHub, tmp_path: Path) -> None:
    office = make_office(github, tmp_path / "office")
    office.item()
    office.github.browser("ada").merge(REPO, office.number())
    with office.bus("ada") as ada:
        ada.propose_config("sending.enabled", True)
    office.conduct()
    office.github.browser("rita").merge(REPO, office.number("gitbus/decide/bus"))
    assert refused(office) == {"sending-off"}
    with office.bus("ada") as ada:
        assert ada.effective().pending


@pytest.mark.long
def test_what_github_refuses_itself(office: Office) -> None:
    number = office.number()
    with office.bus("ada") as ada:
        review = ada.forge.acting.review  # type: ignore[union-attr]
        assert review(paths.HEADS + BRANCH, office.refs()[paths.HEADS + BRANCH], "ok", None)
    with pytest.raises(RefusedCall):
        office.github.browser("mallory").merge(REPO, number)


Refuse = Callable[[Office], None]


@pytest.mark.long
def test_the_api_that_tells_of_another_main(office: Office) -> None:
    office.github.browser("ada").merge(REPO, office.number())
    merged = office.refs()["refs/heads/main"]
    bare = office.github.world.repos[REPO].git
    ident = ("-c", "user.name=x", "-c", "user.email=x@test")
    other = git(bare.path, *ident, "commit-tree", f"{merged}^{{tree}}", "-p", f"{merged}~1", "-m", "another")
    office.github.world.repos[REPO].refs["refs/heads/main"] = other
    with pytest.raises(Exception, match=r"different histories|behind git"):
        office.send()
    assert office.messages() == []
