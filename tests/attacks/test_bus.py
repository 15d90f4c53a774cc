"""bus.yaml changed by whom it was not to be: what is effective, what is pending, and what still stops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitbus import codec, paths
from gitbus.errors import Refused
from gitbus.proof.bus import Effective, sending_on
from tests.support.busparts import changed_bus, ident, public
from tests.support.busrepo import BusRepo
from tests.support.gitrepo import Content


def keys(bus: BusRepo, **more: list[str]) -> list[dict[str, Any]]:
    """Return the bus's people, some with other keys."""
    people = [one.model_dump(mode="json") for one in bus.bus.people]
    for one in people:
        one["keys"] = [public(name) for name in more.get(one["id"], [one["id"]])]
    return people


def mallory(bus: BusRepo) -> Any:
    """Return a bus.yaml with one more key of Ada's."""
    return changed_bus(bus.bus, people=keys(bus, ada=["ada", "mallory"]))


def off(bus: BusRepo, known: Effective | None = None) -> str | None:
    """Return the rule by which nothing may be sent."""
    why = sending_on(bus.effective(known=known), bus.fresh())
    return why.rule if why else None


def assert_unchanged(bus: BusRepo, pending: int = 1) -> None:
    """The root's Bus is still the effective one."""
    known = bus.effective(bus.root)
    for found in (bus.effective(), bus.effective(known=known)):
        assert found.blob == known.blob
        assert len(found.pending) == pending


# --- who may


@pytest.mark.parametrize(("by", "key"), [("conductor", None), ("ada", None), ("ada", "mallory"), ("rita", "rita"),
                                         ("oscar", "oscar")])  # fmt: skip
@pytest.mark.parametrize("name", [False, True])
def test_written_by_nobody_with_the_right(bus: BusRepo, by: str, key: str | None, name: bool) -> None:
    bus.write_bus(mallory(bus), by, key=key, name=name)
    assert_unchanged(bus)


def test_author_is_not_committer(bus: BusRepo) -> None:
    bus.write_bus(mallory(bus), "ada", author=ident("ada", bus.now))
    assert_unchanged(bus)


def test_unsigned_edit_rebased_by_an_approver(bus: BusRepo) -> None:
    clone = bus.clone("ada")
    evil = bus.write_bus(mallory(bus), "conductor", key=None)
    bus.git("ada", "pull", "-q", "--ff-only", at=clone)
    bus.point("main", bus.root)
    bus.commit({"goals/x.md": "x\n"})
    bus.git("ada", "pull", "-q", "--rebase", "-S", at=clone)
    bus.git("ada", "fetch", "-q", at=clone)
    bus.git("ada", "rebase", "-q", "-S", "--onto", "origin/main", bus.root, evil, at=clone)
    bus.git("ada", "push", "-q", "origin", "HEAD:main", at=clone)
    assert bus.store.signature(bus.tip, [public("ada")]).verdict == "good"
    assert_unchanged(bus)


@pytest.mark.parametrize("flag", ["--no-ff", "--squash"])
def test_unsigned_edit_merged_by_an_approver(bus: BusRepo, flag: str) -> None:
    bus.write_bus(mallory(bus), "conductor", key=None, on="gitbus/decide/bus", parents=[bus.tip])
    bus.checkout()
    bus.git(
        "ada", "merge", "-q", flag, *([] if flag == "--squash" else ["-S", "--no-edit"]), "gitbus/decide/bus"
    )
    if flag == "--squash":
        bus.git("ada", "commit", "-q", "-S", "--no-edit")
    assert bus.store.signature(bus.tip, [public("ada")]).verdict == "good"
    assert_unchanged(bus)


def test_merged_tag_whose_own_message_names_the_blob(bus: BusRepo) -> None:
    data = codec.write(mallory(bus))
    edit = bus.write_bus(data, "conductor", key=None, on="edit", parents=[bus.tip])
    bus.git("conductor", "tag", "-a", "-m", f"version 1\n\nGitbus-Bus: {bus.blob(data)}", "v1", edit)
    merge = bus.merge("ada", "refs/tags/v1")
    assert f"Gitbus-Bus: {bus.blob(data)}" in bus.store.commit(merge).message
    assert_unchanged(bus)


def test_squash_of_an_approval_branch_with_words_of_ones_own(bus: BusRepo) -> None:
    item = bus.put_up()
    bus.commit({paths.BUS: mallory(bus)}, on=f"gitbus/approve/{item}")
    bus.checkout()
    bus.git("ada", "merge", "-q", "--squash", f"gitbus/approve/{item}")
    bus.git("ada", "commit", "-q", "-S", "-m", "approve it")
    assert_unchanged(bus)
    assert "merge-holds-more" in bus.refused()


def test_unsigned_edit_pulled_by_an_approver(bus: BusRepo) -> None:
    clone = bus.clone("ada")
    (clone / "notes.md").write_text("hers\n")
    bus.git("ada", "add", "notes.md", at=clone)
    bus.git("ada", "commit", "-q", "-S", "-m", "hers", at=clone)
    bus.write_bus(mallory(bus), "conductor", key=None)
    bus.git("ada", "pull", "-q", "--no-rebase", "--no-edit", "-S", at=clone)
    bus.git("ada", "push", "-q", "origin", "HEAD:main", at=clone)
    assert_unchanged(bus)


def test_pending_edit_cannot_ride_on_an_honest_signature(bus: BusRepo) -> None:
    bus.write_bus(mallory(bus), "conductor", key=None)
    bus.write_bus(changed_bus(mallory(bus), sending={"hold": "1m"}), "ada")
    assert_unchanged(bus, pending=2)


def test_pending_edit_is_lost_by_a_signed_change_of_the_effective_version(bus: BusRepo) -> None:
    bus.write_bus(mallory(bus), "conductor", key=None)
    bus.write_bus(bus.bus, "conductor", key=None)
    bus.set_bus("ada", sending={"hold": "1m"})
    found = bus.effective()
    assert (found.pending, found.bus.sending.hold.seconds) == ((), 60)
    assert public("mallory") not in found.bus.people[0].keys


@pytest.mark.parametrize("name", ["blob", "old", "none"])
def test_name_of_another_blob(bus: BusRepo, name: str) -> None:
    bus.write_bus(mallory(bus), "conductor", key=None)
    other = {"blob": bus.blob("x\n"), "old": bus.effective().blob, "none": ""}[name]
    bus.commit({}, f"ratify\n\nGitbus-Bus: {other}\n", by="ada", key="ada")
    assert_unchanged(bus)


def test_named_by_two_trailers(bus: BusRepo) -> None:
    data = codec.write(mallory(bus))
    bus.write_bus(data, "conductor", key=None)
    message = f"ratify\n\nGitbus-Bus: {bus.blob(data)}\nGitbus-Bus: {bus.effective().blob}\n"
    bus.commit({}, message, by="ada", key="ada")
    assert_unchanged(bus)


def test_version_that_cannot_be_read_is_never_effective(bus: BusRepo) -> None:
    bus.write_bus("people: [\n", "ada", name=True)
    assert_unchanged(bus)
    assert off(bus) == "bus-unreadable"


# --- who may, and did


def test_signed_edits_ratified_and_merged_by_name(bus: BusRepo) -> None:
    known = bus.effective()
    bus.set_bus("ada", sending={"hold": "1m"})
    bus.write_bus(changed_bus(bus.bus, sending={"hold": "2m"}), "oscar", key=None)
    bus.ratify("bob")
    assert bus.effective().bus.sending.hold.seconds == 120
    third = codec.write(changed_bus(bus.bus, sending={"hold": "3m"}))
    bus.write_bus(third, "oscar", key=None, on="gitbus/decide/bus", parents=[bus.tip])
    bus.merge("ada", "gitbus/decide/bus", options=["-m", f"config\n\nGitbus-Bus: {bus.blob(third)}"])
    for found in (bus.effective(), bus.effective(known=known)):
        assert [one.person for one in found.advances] == [None, "ada", "bob", "ada"]
        assert (found.bus.sending.hold.seconds, found.pending, found.commit) == (180, (), bus.tip)
        assert found.at(bus.store, known.tip).sending.hold.seconds == 0
    assert bus.line() == set()


def test_pending_edit_names_its_line(bus: BusRepo) -> None:
    text = codec.write(bus.bus).decode().replace("name: acme", "name: other")
    bus.write_bus(text, "oscar", key=None)
    [pending] = bus.effective().pending
    assert (pending.commit, text.split("\n")[pending.line - 1]) == (bus.tip, "name: other")


def test_discarded_edit_leaves_nothing_pending(bus: BusRepo) -> None:
    bus.write_bus(mallory(bus), "conductor", key=None)
    bus.write_bus(bus.bus, "ada", name=True)
    assert_unchanged(bus, pending=0)


# --- stopping


def test_the_flag(make_repo: Callable[..., BusRepo]) -> None:
    bus = make_repo(sending={"enabled": False})
    assert off(bus) == "sending-off"
    bus.set_bus("ada", sending={"enabled": True})
    assert off(bus) is None


@pytest.mark.parametrize("stop", ["off", "garbled", "gone"])
def test_unsigned_stop_is_lifted_by_an_approver_only(bus: BusRepo, stop: str) -> None:
    known = bus.effective()
    honest = bus.bus
    contents: dict[str, Content] = {
        "off": changed_bus(honest, sending={"enabled": False}),
        "garbled": "?\n",
        "gone": None,
    }
    bus.write_bus(contents[stop], "conductor", key=None)
    assert off(bus) in ("sending-stopped", "bus-unreadable")
    bus.write_bus(honest, "conductor", key=None)
    assert off(bus) == off(bus, known) == "sending-stopped"
    bus.commit({})
    assert off(bus) == off(bus, bus.effective(bus.store.commit(bus.tip).parents[0])) == "sending-stopped"
    bus.commit({}, f"ratify\n\nGitbus-Bus: {bus.effective().blob}\n", by="rita", key="rita")
    assert off(bus) == "sending-stopped"
    bus.ratify("bob")
    assert off(bus) is off(bus, known) is None


def test_stop_survives_a_signed_merge_that_names_nothing(bus: BusRepo) -> None:
    bus.write_bus(changed_bus(bus.bus, sending={"enabled": False}), "conductor", key=None)
    bus.write_bus(bus.bus, "conductor", key=None, on="back", parents=[bus.tip])
    bus.merge("ada", "refs/heads/back")
    assert off(bus) == "sending-stopped"


def test_stop_is_lifted_by_the_next_honest_change(bus: BusRepo) -> None:
    bus.write_bus(changed_bus(bus.bus, sending={"enabled": False}), "conductor", key=None)
    bus.write_bus(bus.bus, "conductor", key=None)
    bus.set_bus("ada", sending={"hold": "1m"})
    assert off(bus) is None


def test_flag_turned_on_in_an_approving_merge(make_repo: Callable[..., BusRepo]) -> None:
    bus = make_repo(sending={"enabled": False})
    item = bus.put_up()
    bus.commit({paths.BUS: changed_bus(bus.bus, sending={"enabled": True})}, on=f"gitbus/approve/{item}")
    bus.merge("ada")
    assert off(bus) == "sending-off"
    assert_unchanged(bus)


# --- the root


def test_root_of_ones_own(bus: BusRepo, make_repo: Callable[..., BusRepo], tmp_path: Path) -> None:
    own = bus.commit({paths.BUS: mallory(bus)}, "init", parents=[], on="own")
    bus.commit({}, "take over", on="own", parents=[own, bus.tip])
    bus.point("main", bus.at("own"))
    with pytest.raises(Refused) as refused:
        bus.effective()
    assert refused.value.rule == "not-on-line"


def test_root_without_a_bus(bus: BusRepo) -> None:
    root = bus.commit({"a": "b\n"}, parents=[], on="empty")
    bus.root = root
    with pytest.raises(Refused) as refused:
        bus.effective(root)
    assert refused.value.rule == "no-bus"
