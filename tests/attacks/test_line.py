"""Something brought back, or put aside: by a force push, behind a merge, under an old tree or a root of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitbus import paths
from gitbus.hub.run import Git
from gitbus.hub.store import GitStore
from gitbus.proof.approval import prove_approval
from gitbus.proof.bus import effective, sending_on
from gitbus.proof.line import line_findings
from gitbus.proof.messages import ACCEPT
from tests.support.busrepo import ITEM, BusRepo, changed_bus

OTHER = "a.post.item"


def sent(bus: BusRepo) -> str:
    """Send an item; return the tip at which it was approved."""
    bus.put_up()
    approved = bus.merge("ada")
    bus.attest(ITEM, "sent", bus.lease())
    return approved


def withdrawn(bus: BusRepo) -> str:
    """Withdraw an approved item; return the tip at which it was approved."""
    bus.put_up()
    approved = bus.merge("ada")
    bus.state(ITEM, "withdrawn")
    return approved


def key_removed(bus: BusRepo) -> str:
    """Take Bob's key away; return the tip before."""
    before = bus.tip
    people = [one.model_dump(mode="json") for one in bus.bus.people if one.id != "bob"]
    bus.set_bus("ada", people=people)
    return before


def flag_off(bus: BusRepo) -> str:
    """Turn the flag off; return the tip before."""
    before = bus.tip
    bus.set_bus("ada", sending={"enabled": False})
    return before


STORIES = [sent, withdrawn, key_removed, flag_off]


def old_main_first(bus: BusRepo, old: str, tree: str, key: str | None = None) -> str:
    """Move ``main`` forward to a merge whose first parent is an old ``main``, with the tree of a commit."""
    parents = [old, bus.tip]
    return bus.commit({}, "absorb", parents=parents, tree=bus.store.commit(tree).tree, key=key)


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("key", [None, "ada"])
def test_old_main_as_first_parent_with_its_tree(
    bus: BusRepo, story: Callable[[BusRepo], str], key: str | None
) -> None:
    old = story(bus)
    old_main_first(bus, old, tree=old, key=key)
    assert bus.line() == {"hidden-history"}
    assert bus.line(proved=bus.root) == {"hidden-history"}


@pytest.mark.parametrize("story", STORIES)
def test_new_commit_on_an_old_main(bus: BusRepo, story: Callable[[BusRepo], str]) -> None:
    old = story(bus)
    now = bus.tip
    new = bus.commit({"goals/x.md": "x\n"}, parents=[old])
    bus.commit({}, "absorb", parents=[new, now])
    assert bus.line() == {"hidden-history"}


@pytest.mark.parametrize("story", STORIES)
def test_force_push_is_seen_by_a_clone_with_memory(bus: BusRepo, story: Callable[[BusRepo], str]) -> None:
    old = story(bus)
    known = bus.tip
    bus.point("main", old)
    bus.commit({"goals/x.md": "x\n"})
    assert bus.line() == set()
    assert bus.line(seen=known) == bus.line(proved=known) == {"not-on-line"}


def test_tip_that_is_not_here_any_more(bus: BusRepo) -> None:
    assert bus.line(seen="1" * 40) == {"not-on-line"}


@pytest.mark.parametrize("story", [key_removed, flag_off])
def test_decision_put_beside_the_line_with_its_tree_kept(
    bus: BusRepo, story: Callable[[BusRepo], str]
) -> None:
    old = story(bus)
    old_main_first(bus, old, tree=bus.tip)
    assert bus.line() == {"hidden-history"}


def test_merged_decision_put_beside_the_line_with_its_tree_kept(bus: BusRepo) -> None:
    old = bus.tip
    off = changed_bus(bus.bus, sending={"enabled": False})
    bus.write_bus(off, "oscar", key=None, on="gitbus/decide/bus", parents=[bus.tip])
    bus.merge("ada", "gitbus/decide/bus", options=["-m", f"config\n\nGitbus-Bus: {bus.blob(off)}"])
    assert bus.effective().commit == bus.tip
    old_main_first(bus, old, tree=bus.tip)
    assert bus.line() == {"hidden-history"}


def test_ratification_put_beside_the_line(bus: BusRepo) -> None:
    """It changes no file at all, yet it removed a key."""
    people = [one.model_dump(mode="json") for one in bus.bus.people if one.id != "bob"]
    pending = bus.write_bus(changed_bus(bus.bus, people=people), "oscar", key=None)
    bus.ratify("ada")
    assert bus.effective().bus.person("bob") is None
    old_main_first(bus, pending, tree=bus.tip)
    assert bus.effective().bus.person("bob") is not None
    assert bus.line() == {"hidden-history"}


@pytest.mark.parametrize("story", STORIES)
def test_old_tree_on_the_line_brings_nothing_back(bus: BusRepo, story: Callable[[BusRepo], str]) -> None:
    old = story(bus)
    before = bus.effective()
    bus.commit({}, "absorb", parents=[bus.tip, old], tree=bus.store.commit(old).tree)
    assert bus.effective().blob == before.blob
    assert bus.line() == set()
    if story in (sent, withdrawn):
        assert bus.refused() & {"unsigned", "state-jump"}
    if story is flag_off:
        assert sending_on(bus.effective(), bus.fresh()) is not None


def test_leases_are_seen_behind_any_merge(bus: BusRepo) -> None:
    approved = sent(bus)
    old_main_first(bus, approved, tree=approved)
    assert bus.refused() == {"state-jump"}
    assert [one.opened for one in bus.leases()] == [{"sent"}]


def test_root_of_ones_own(bus: BusRepo) -> None:
    own = bus.commit({paths.BUS: bus.bus}, "init", parents=[], on="own")
    root = bus.root
    tip = bus.commit({}, "take over", on="own", parents=[own, bus.tip])
    history = bus.fresh()
    found = effective(history, tip, own)
    assert {one.rule for one in line_findings(history, tip, root, found)} == {"not-on-line"}


def test_merge_beside_the_line_that_git_does_not_make(bus: BusRepo) -> None:
    bus.put_up()
    branch = f"gitbus/approve/{ITEM}"
    tree = bus.tree(bus.store.commit(bus.at(branch)).tree, {"workers/mac.yaml": "x\n"})
    bus.commit({}, "update", on=branch, parents=[bus.at(branch), bus.tip], tree=tree)
    bus.merge("ada")
    assert bus.line() == {"hidden-history"}


def test_merge_beside_the_line_that_takes_a_side(bus: BusRepo) -> None:
    before = bus.tip
    flag_off(bus)
    aside = bus.detached({}, "update", parents=[bus.tip, bus.detached({"a": "b\n"}, parents=[before])],
                         tree=bus.store.commit(before).tree)  # fmt: skip
    bus.commit({}, "absorb", parents=[bus.tip, aside], tree=bus.store.commit(bus.tip).tree)
    assert bus.line() == {"hidden-history"}


def test_octopus_beside_the_line(bus: BusRepo) -> None:
    sides = [bus.detached({f"workers/{name}.yaml": "x\n"}) for name in "abc"]
    aside = bus.detached({}, parents=sides)
    bus.commit({}, "absorb", parents=[bus.tip, aside])
    assert bus.line() == {"hidden-history"}


@pytest.mark.parametrize(
    "path", ["workers/mac.yaml", "outbox/x.y.z/item.yaml", "archive/2026/12/x", "bus.yaml"]
)
def test_protected_path_taken_in_and_dropped(bus: BusRepo, path: str) -> None:
    side = bus.detached({path: "new\n"}, by="laptop")
    bus.commit({}, "absorb", parents=[bus.tip, side])
    assert bus.line() == {"hidden-history"}


def test_what_is_not_protected_may_be_dropped(bus: BusRepo) -> None:
    side = bus.detached({"goals/a.md": "new\n"}, by="laptop")
    bus.commit({}, "absorb", parents=[bus.tip, side])
    assert bus.line() == set()


def test_flips_beside_the_line_are_what_approval_branches_are_for(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada", options=["-s", "ours"])
    assert bus.line() == set()


def test_a_pull_that_drops_nothing(bus: BusRepo) -> None:
    """A merge of the old ``main`` into one's own commit hides nothing where its tree holds everything."""
    bus.put_up()
    clone = bus.clone("ada")
    (clone / "notes.md").write_text("hers\n")
    bus.git("ada", "add", "notes.md", at=clone)
    bus.git("ada", "commit", "-q", "-S", "-m", "hers", at=clone)
    bus.put_up(OTHER)
    bus.git("ada", "pull", "-q", "--no-rebase", "--no-edit", at=clone)
    bus.git("ada", "push", "-q", "origin", "HEAD:main", at=clone)
    assert bus.line() == set()
    bus.merge("ada")
    assert bus.prove().proved
    bus.merge("ada", OTHER)
    assert "entry-mismatch" in bus.refused(OTHER)


# --- accepting


def accept(bus: BusRepo, who: str, tip: str, key: str | None = "", **how: object) -> None:
    """Commit an acceptance of a tip."""
    blob = how.pop("blob", None) or bus.effective().blob
    named = how.pop("named", tip)
    message = f"accept\n\nGitbus-Bus: {blob}\n{ACCEPT}: {named}\n"
    bus.commit({}, message, by=who, key=who if key == "" else key, parents=[bus.tip, tip], **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("story", [sent, key_removed, flag_off])
def test_accepted_by_an_approver(bus: BusRepo, story: Callable[[BusRepo], str]) -> None:
    old = story(bus)
    hidden = bus.tip
    old_main_first(bus, old, tree=old)
    if story is sent:
        bus.state(ITEM, "awaiting_approval")
    accept(bus, "ada", hidden)
    assert bus.line() == bus.line(seen=hidden) == set()
    bus.commit({"goals/x.md": "x\n"})
    assert bus.line() == bus.line(proved=hidden) == set()


def test_force_push_accepted_by_an_approver(bus: BusRepo) -> None:
    old = withdrawn(bus)
    known = bus.tip
    bus.point("main", old)
    bus.state(ITEM, "awaiting_approval")
    assert bus.line(seen=known) == {"not-on-line"}
    accept(bus, "ada", known)
    assert bus.line(seen=known) == bus.line(proved=known) == set()


def test_who_was_removed_cannot_accept_that_he_was_not(bus: BusRepo) -> None:
    old = key_removed(bus)
    hidden = bus.tip
    old_main_first(bus, old, tree=old)
    assert bus.effective().bus.person("bob") is not None
    accept(bus, "bob", hidden)
    assert bus.line() == {"hidden-history"}
    accept(bus, "bob", bus.detached({}, parents=[old, hidden], tree=bus.store.commit(old).tree))
    assert bus.line() == {"hidden-history"}


@pytest.mark.parametrize("wrong", ["unsigned", "reviewer", "unnamed", "no parent", "bus", "approved"])
def test_acceptance_that_counts_for_nothing(bus: BusRepo, wrong: str) -> None:
    old = flag_off(bus)
    hidden = bus.tip
    old_main_first(bus, old, tree=old)
    if wrong == "approved":
        bus.put_up()
        bus.merge("ada")
    who, key = {"unsigned": ("ada", None), "reviewer": ("rita", "rita")}.get(wrong, ("ada", "ada"))
    more = {"unnamed": {"named": bus.root}, "bus": {"blob": bus.blob("x\n")}}.get(wrong, {})
    accept(bus, who, bus.root if wrong == "no parent" else hidden, key, **{"named": hidden, **more})
    assert bus.line() == {"hidden-history"}


# --- a clone that does not hold all, or lies


def view(folder: Path) -> GitStore:
    """Return the objects of a clone."""
    git = Git(folder)
    return GitStore(git, git)


def test_shallow_clone(bus: BusRepo, tmp_path: Path) -> None:
    bus.put_up()
    bus.merge("ada")
    found = bus.effective()
    shallow = tmp_path / "shallow"
    bus.git(None, "clone", "-q", "--bare", "--depth", "2", f"file://{bus.folder}", str(shallow))
    history = view(shallow)
    try:
        assert {one.rule for one in line_findings(history, bus.tip, bus.root, found)} <= {
            "shallow",
            "not-on-line",
        }
        assert line_findings(history, bus.tip, bus.root, found)
        proof = prove_approval(history, bus.tip, ITEM, root=bus.root, now=bus.now)
        assert not proof.proved
        assert proof.unasked
    finally:
        history.close()


@pytest.mark.parametrize("how", ["replace", "graft"])
def test_lease_hidden_by_a_replace_ref_or_a_graft(bus: BusRepo, how: str) -> None:
    bus.put_up()
    approved = bus.merge("ada")
    bus.lease()
    back = bus.commit({}, tree=bus.store.commit(approved).tree)
    if how == "replace":
        bus.git(None, "replace", "--graft", back, approved)
    else:
        info = bus.folder / ".git" / "info"
        info.mkdir(exist_ok=True)
        (info / "grafts").write_text(f"{back} {approved}\n")
    assert bus.git(None, "rev-list", "HEAD", "--", paths.lease(ITEM, 1)) == ""
    assert [one.closed for one in bus.leases()] == [False]
