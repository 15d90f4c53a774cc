"""Decisions proposed by somebody who may not decide: an unsigned commit on a branch, merged by name.

Example: ``propose(bus, "bus", change)`` makes ``gitbus/decide/bus``; ``merge_decision(bus, "bus")`` is an
approver's signed merge of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitbus import codec, paths, records
from gitbus.change import Change, Thread
from gitbus.errors import HubMoved, Refused
from gitbus.history import FILE, Entry, Oid
from gitbus.hub import Draft, RefMove
from gitbus.writing import Writer

if TYPE_CHECKING:
    from gitbus.bus.core import OpenBus

TRIES = 20


def propose(bus: OpenBus, name: str, change: Change) -> Oid:
    """Put a change up on ``gitbus/decide/NAME`` for an approver to merge; return its commit."""
    writer = Writer(bus.hub.store, None)
    ref = paths.DECIDE + name
    for _ in range(TRIES):
        refs = bus.refs()
        made = writer.commits(refs[bus.hub.main], [change], bus.now())[0]
        if bus.hub.move([RefMove(ref, refs.get(ref), made, replace=True)]).moved(ref):
            return made
    raise HubMoved(f"{ref} moves all the time", rule="hub-moved")


def proposed(bus: OpenBus, name: str) -> dict[str, Entry | None]:
    """Return what a proposed decision writes: path → entry.

    Raises:
        Refused: there is none, or it holds more than such a decision may.
    """
    tip = bus.refs().get(paths.DECIDE + name)
    if tip is None:
        raise Refused(
            f"there is no gitbus/decide/{name}", rule="no-decision", remedy="git branch -r lists them"
        )
    store = bus.hub.store
    commit = store.commit(tip)
    if len(commit.parents) != 1:
        raise Refused(f"gitbus/decide/{name} is not one commit", rule="holds-more")
    found = {one.path: one.new for one in store.diff(store.commit(commit.parents[0]).tree, commit.tree)}
    for path, entry in found.items():
        if not _may(name, path) or (entry is not None and entry.mode != FILE):
            raise Refused(f"gitbus/decide/{name} changes {path} as well", rule="holds-more")
    return found


def _may(name: str, path: str) -> bool:
    if name == "bus":
        return path == paths.BUS
    folder = paths.item_folder(name) + "/"
    inner = path.removeprefix(folder)
    return path.startswith(folder) and inner.startswith(("item.yaml", "approval.yaml", "resolution."))


def merge_decision(bus: OpenBus, name: str) -> tuple[Oid, str]:
    """Merge a proposed decision by name, signed with the user's key; return commit and subject.

    Raises:
        Refused: there is none, or it cannot be merged any more.
    """
    writes = proposed(bus, name)
    store = bus.hub.store
    for _ in range(TRIES):
        refs = bus.refs()
        tip, side = refs[bus.hub.main], refs[paths.DECIDE + name]
        change = _merge(bus, name, writes, tip, side)
        tree = store.write_tree(store.commit(tip).tree, writes)
        made = store.write_commit(Draft(tree, (tip, side), change.message(), None, bus.now(), sign=True))
        done = bus.hub.move([RefMove(bus.hub.main, tip, made), RefMove(paths.DECIDE + name, side, None)])
        if done.moved(bus.hub.main):
            return made, f"{change.verb} {change.subject}"
    raise HubMoved("the bus's branch moved each time", rule="hub-moved", remedy="try again")


def _merge(bus: OpenBus, name: str, writes: dict[str, Entry | None], tip: Oid, side: Oid) -> Change:
    store = bus.hub.store
    if name != "bus":
        base = store.commit(side).parents[0]
        if store.entry(tip, paths.item(name)) != store.entry(base, paths.item(name)):
            raise Refused(
                f"{name} changed since that was proposed", rule="stale-branch", remedy="propose it anew"
            )
        return Change("resolve", f"{name}, as proposed", about=(Thread(item=name),))
    entry = writes[paths.BUS]
    if entry is None:
        raise Refused("bus.yaml is never removed", rule="holds-more")
    codec.read(store.blob(entry.oid), records.Bus, path=paths.BUS)
    return Change("config", "as proposed on gitbus/decide/bus", trailers=(("Gitbus-Bus", entry.oid),))
