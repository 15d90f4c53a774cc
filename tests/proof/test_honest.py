"""Honest stories: each has to be proved, from a fresh clone and from one with memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from gitbus import paths
from gitbus.proof.bus import Effective, sending_on
from gitbus.records import Item
from tests.support.busrepo import ITEM, BusRepo, public

OTHER, THIRD = "a.post.item", "b.mail.item"


def assert_proved(bus: BusRepo, known: Effective, *items: str, people: Sequence[str] = ("ada",)) -> None:
    """Every item is proved and the line holds, whether or not anything is remembered."""
    for name in items:
        for memory in (None, known):
            proof = bus.prove(name, known=memory)
            assert proof.missing == ()
            assert proof.proved
            assert proof.people == tuple(people)
            assert {one.assurance for one in proof.verified} == {"proved"}
    assert bus.line() == set()
    assert bus.line(seen=[bus.root, known.tip], proved=known.tip) == set()
    found = bus.effective(known=known)
    assert (found.blob, found.pending, found.stops) == (bus.effective().blob, (), ())


# --- merges


@pytest.mark.parametrize("branch", ["main", "gitbus/bus"])
def test_plain_merge(make_repo: Callable[..., BusRepo], branch: str) -> None:
    bus = make_repo(branch=branch)
    bus.put_up()
    known = bus.effective()
    bus.git(None, "config", "merge.suppressDest", "")
    merge = bus.merge("ada")
    assert bus.store.commit(merge).subject == f"Merge branch 'gitbus/approve/{ITEM}' into {branch}"
    assert_proved(bus, known, ITEM)


def test_plain_merge_with_a_short_subject(bus: BusRepo) -> None:
    bus.put_up()
    known = bus.effective()
    bus.git(None, "config", "merge.suppressDest", "main")
    assert bus.store.commit(bus.merge("ada")).subject == f"Merge branch 'gitbus/approve/{ITEM}'"
    assert_proved(bus, known, ITEM)


def test_plain_merge_of_several(bus: BusRepo) -> None:
    names = [bus.put_up(name) for name in (ITEM, OTHER, THIRD)]
    known = bus.effective()
    bus.merge("ada", *names)
    assert_proved(bus, known, *names)


@pytest.mark.parametrize("remote", ["origin", "work/hub"])
def test_remote_tracking_branch(bus: BusRepo, remote: str) -> None:
    bus.put_up()
    bus.put_up(OTHER)
    known = bus.effective()
    for name in (ITEM, OTHER):
        bus.git(None, "update-ref", f"refs/remotes/{remote}/gitbus/approve/{name}", f"gitbus/approve/{name}")
    bus.merge("ada", *(f"{remote}/gitbus/approve/{name}" for name in (ITEM, OTHER)))
    assert bus.store.commit(bus.tip).subject.startswith(f"Merge remote-tracking branches '{remote}/gitbus")
    assert_proved(bus, known, ITEM, OTHER)


def test_pulled_from_a_url(bus: BusRepo) -> None:
    bus.put_up()
    known = bus.effective()
    bus.checkout()
    url = f"file://{bus.folder}"
    bus.git("ada", "pull", "-q", "--no-rebase", "--no-ff", "-S", "--no-edit", url, f"gitbus/approve/{ITEM}")
    assert f"' of {url}" in bus.store.commit(bus.tip).subject
    assert_proved(bus, known, ITEM)


def test_approve_of_three_at_once(bus: BusRepo) -> None:
    names = [bus.put_up(name) for name in (ITEM, OTHER, THIRD)]
    known = bus.effective()
    bus.approve("ada", *names)
    assert_proved(bus, known, *names)


def test_batch(bus: BusRepo) -> None:
    for name in (ITEM, "a.mail.second"):
        bus.put(name, together="a.mail")
    entries = {name: bus.wait(name) for name in (ITEM, "a.mail.second")}
    bus.flip(*entries, branch="a.mail")
    bus.commit({}, "put up 2 items")
    known = bus.effective()
    bus.merge("ada", "a.mail")
    assert_proved(bus, known, *entries)


# --- signed commits that are the flip


def test_one_signed_flip(bus: BusRepo) -> None:
    bus.put_up()
    known = bus.effective()
    bus.commit(bus.flipped(ITEM, bus._entries[ITEM], bus.tip), "yes", by="ada", key="ada")
    assert_proved(bus, known, ITEM)


def test_one_signed_flip_of_those_it_names(bus: BusRepo) -> None:
    names = [bus.put_up(name) for name in (ITEM, OTHER)]
    known = bus.effective()
    changes = {
        path: file for name in names for path, file in bus.flipped(name, bus._entries[name], bus.tip).items()
    }
    bus.commit(changes, f"yes\n\nGitbus-Item: {ITEM}\nGitbus-Item: {OTHER}\n", by="ada", key="ada")
    assert_proved(bus, known, *names)


# --- what happens around it


def test_branch_brought_up_to_date_first(bus: BusRepo) -> None:
    bus.put_up()
    known = bus.effective()
    bus.put_up(OTHER)
    bus.set_bus(sending={"hold": "1m"})
    clone = bus.clone("bob")
    bus.git("bob", "checkout", "-q", f"gitbus/approve/{ITEM}", at=clone)
    bus.git("bob", "merge", "-q", "--no-edit", "-S", "origin/main", at=clone)
    bus.git("bob", "push", "-q", "origin", "HEAD", at=clone)
    bus.commit({"goals/c/goal.yaml": "more\n"})
    bus.merge("ada")
    assert_proved(bus, known, ITEM)


def test_workers_tips_before_and_after(bus: BusRepo) -> None:
    def absorb(at: str) -> None:
        tip = bus.detached({f"goals/a/results/{at}.yaml": f"{at}\n"}, by="laptop", parents=[bus.tip])
        bus.commit({"goals/a/report.yaml": f"{at}\n"}, "absorb", parents=[bus.tip, tip])

    absorb("one")
    bus.put_up()
    known = bus.effective()
    absorb("two")
    bus.merge("ada")
    absorb("three")
    assert_proved(bus, known, ITEM)


def test_in_review_with_its_review(bus: BusRepo) -> None:
    bus.put_up(state="in_review")
    known = bus.effective()
    bus.review("rita")
    bus.merge("ada")
    assert_proved(bus, known, ITEM)


def test_quorum_of_merger_and_review(make_repo: Callable[..., BusRepo]) -> None:
    bus = make_repo(approval={"quorum": 2})
    bus.put_up()
    known = bus.effective()
    bus.review("bob")
    bus.merge("ada")
    assert_proved(bus, known, ITEM, people=("ada", "bob"))


def test_a_no_that_the_same_person_took_back(bus: BusRepo) -> None:
    bus.put_up()
    known = bus.effective()
    bus.review("rita", verdict="no")
    bus.review("rita")
    bus.merge("ada")
    assert_proved(bus, known, ITEM)


def test_edit_taken_in_as_a_revision(bus: BusRepo) -> None:
    bus.put_up()
    known = bus.effective()
    body = f"{paths.item_folder(ITEM)}/body.txt"
    bus.commit({body: "Hello all\n"}, "nicer", by="ada", on=f"gitbus/approve/{ITEM}")
    bus.put(text="Hello all\n", revision=2)
    bus.again()
    bus.merge("ada")
    assert_proved(bus, known, ITEM)
    assert bus.item().revision == 2


def test_merged_slip_put_right(bus: BusRepo) -> None:
    bus.put_up()
    known = bus.effective()
    bus.merge("ada", sign=False)
    assert bus.refused() == {"unsigned"}
    bus.again(reason="no approval")
    bus.merge("ada")
    assert_proved(bus, known, ITEM)


def test_merged_edit_kept_and_approved(bus: BusRepo) -> None:
    bus.put_up()
    known = bus.effective()
    bus.commit(
        {f"{paths.item_folder(ITEM)}/body.txt": "Hi\n"}, "nicer", by="bob", on=f"gitbus/approve/{ITEM}"
    )
    bus.merge("ada")
    assert "merge-holds-more" in bus.refused()
    bus.put(text="Hi\n", revision=2)
    bus.again()
    bus.merge("ada")
    assert_proved(bus, known, ITEM)


def test_merged_revert_then_approved_anew(bus: BusRepo) -> None:
    bus.put_up()
    known = bus.effective()
    bus.merge("ada")
    bus.git("bob", "checkout", "-q", "-b", "undo")
    bus.git("bob", "revert", "--no-edit", "-m", "1", "HEAD")
    bus.git("bob", "checkout", "-q", "main")
    revert = bus.merge("bob", "refs/heads/undo")
    assert bus.refused() == {"not-approved"}
    assert bus.item().state == "awaiting_approval"
    bus._entries[ITEM] = revert
    bus.flip()
    bus.commit({}, "put up")
    bus.merge("ada")
    assert_proved(bus, known, ITEM)


@pytest.mark.parametrize("way", ["demoted", "expired", "failed"])
def test_approved_anew(bus: BusRepo, way: str) -> None:
    bus.put_up()
    bus.merge("ada")
    known = bus.effective()
    if way == "expired":
        bus.tick(days=8)
        assert bus.refused() == {"expired"}
        bus.state(ITEM, "expired")
    if way == "failed":
        bus.attest(ITEM, "not_sent", bus.lease())
    bus.again(attempt=2 if way == "failed" else 1)
    bus.merge("bob")
    assert_proved(bus, known, ITEM, people=("bob",))


def test_bus_changed_three_times_in_between(make_repo: Callable[..., BusRepo]) -> None:
    bus = make_repo(sending={"enabled": False})
    known = bus.effective()
    people = [one.model_dump(mode="json") for one in bus.bus.people]
    people[1]["keys"] = [public("bob-new")]
    bus.put_up()
    bus.set_bus("ada", people=people)
    bus.merge("ada")
    bus.set_bus("bob", key="bob-new", sending={"hold": "1m"})
    bus.set_bus("ada", name=True, sending={"enabled": True})
    assert_proved(bus, known, ITEM)
    assert sending_on(bus.effective(), bus.store) is None
    bus.put_up(OTHER)
    bus.commit(bus.flipped(OTHER, bus._entries[OTHER], bus.tip), "yes", by="bob", key="bob-new")
    assert_proved(bus, known, OTHER, people=("bob",))


def test_operator_branch_and_documentation(bus: BusRepo) -> None:
    bus.put_up()
    known = bus.effective()
    worker = "apiVersion: gitbus/v1\nkind: Worker\nid: mac\ncapabilities: [draw]\n"
    branch = bus.detached({"workers/mac.yaml": worker, "docs/a.md": "hello\n"}, by="oscar")
    bus.merge("ada")
    bus.point("add-mac", branch)
    bus.merge("oscar", "refs/heads/add-mac", sign=False)
    assert_proved(bus, known, ITEM)


def test_two_approvers_racing(bus: BusRepo) -> None:
    bus.put_up()
    bus.put_up(OTHER)
    known = bus.effective()
    for who, name in (("ada", ITEM), ("bob", OTHER)):
        clone = bus.clone(who)
        bus.git(who, "merge", "-q", "--no-ff", "-S", "--no-edit", f"origin/gitbus/approve/{name}", at=clone)
    bus.git("ada", "push", "-q", "origin", "HEAD", at=bus.clone("ada"))
    bus.git("bob", "push", "-q", "origin", "HEAD", at=bus.clone("bob"), check=False)
    bus.git("bob", "fetch", "-q", "origin", at=bus.clone("bob"))
    bus.git("bob", "reset", "-q", "--hard", "origin/main", at=bus.clone("bob"))
    bus.git(
        "bob",
        "merge",
        "-q",
        "--no-ff",
        "-S",
        "--no-edit",
        f"origin/gitbus/approve/{OTHER}",
        at=bus.clone("bob"),
    )
    bus.git("bob", "push", "-q", "origin", "HEAD", at=bus.clone("bob"))
    assert_proved(bus, known, ITEM)
    assert_proved(bus, known, OTHER, people=("bob",))


# --- leases


def test_passing_not_sent_and_second_lease(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    known = bus.effective()
    nonces = bus.lease()
    assert [one.closed for one in bus.leases()] == [False]
    bus.attest(ITEM, "not_sent", nonces, passing=True)
    assert_proved(bus, known, ITEM)
    assert [one.closed for one in bus.leases()] == [True]
    bus.attest(ITEM, "sent", bus.lease())
    assert [(one.attempt, one.closed) for one in bus.leases()] == [(1, True), (2, False)]


@pytest.mark.parametrize("by_merge", [False, True])
def test_stuck_resolved_approved_and_leased_again(bus: BusRepo, by_merge: bool) -> None:
    bus.put_up()
    bus.merge("ada")
    bus.lease()
    bus.state(ITEM, "stuck")
    known = bus.effective()
    bus.tick(minutes=66)
    if by_merge:
        bus.resolve("bob", key=None, on=f"gitbus/decide/{ITEM}", parents=[bus.tip])
        bus.merge("bob", f"gitbus/decide/{ITEM}")
    else:
        bus.resolve("bob")
    assert [one.closed for one in bus.leases()] == [True]
    bus._entries[ITEM] = bus.tip
    bus.flip()
    bus.commit({}, "put up")
    bus.merge("ada")
    assert_proved(bus, known, ITEM)
    bus.lease()
    assert [one.closed for one in bus.leases()] == [True, False]


def test_archived_sent_item(bus: BusRepo) -> None:
    bus.put_up()
    bus.put_up(OTHER)
    bus.merge("ada")
    known = bus.effective()
    bus.attest(ITEM, "sent", bus.lease())
    folder = bus.store.entry(bus.tip, paths.item_folder(ITEM))
    bus.commit({paths.item_folder(ITEM): None, f"archive/2026/12/outbox/{ITEM}": folder}, "archive")
    bus.merge("ada", OTHER)
    assert_proved(bus, known, OTHER)
    assert [one.opened for one in bus.leases()] == [{"sent"}]
    assert bus.read(f"archive/2026/12/outbox/{ITEM}/item.yaml", Item).state == "sent"


def test_late_receipt_in_the_archive_still_opens(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada")
    nonces = bus.lease()
    bus.state(ITEM, "stuck")
    late = bus.receipt(ITEM, "sent", nonces["sent"])
    folder = bus.store.entry(bus.tip, paths.item_folder(ITEM))
    bus.commit({paths.item_folder(ITEM): None, f"archive/2026/12/outbox/{ITEM}": folder}, "archive")
    bus.commit({f"archive/2026/12/outbox/{ITEM}/receipt.1.yaml": late}, "attest late", by="sender")
    assert [one.opened for one in bus.leases()] == [{"sent"}]


def test_judged_by_its_leases_commit(bus: BusRepo) -> None:
    """What was sent stays proved at its lease's parent, whoever is removed since."""
    bus.put_up()
    approved = bus.merge("ada")
    bus.attest(ITEM, "sent", bus.lease())
    then = bus.now - timedelta(minutes=1)
    people = [one.model_dump(mode="json") for one in bus.bus.people if one.id != "ada"]
    bus.set_bus("bob", people=people)
    bus.tick(days=30)
    assert bus.prove(tip=approved, now=then).proved
    assert bus.prove(tip=approved, now=then, known=bus.effective()).proved
