"""What the journeys share: transports that answer as they are told, further people, workers that write by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gitbus import making, paths
from gitbus.auditing import audit_bus
from gitbus.bus import Bus
from gitbus.history import FILE, Entry, Oid
from gitbus.hub.base import Author, Draft, RefMove
from gitbus.sender import Sender, Sent
from gitbus.transports.base import Answer, Identity, Outgoing
from tests.support.world import ITEM, World, waiting_item

BUSY = Answer("not_sent", "451 try again later", passing=True)
REFUSED = Answer("not_sent", "550 no such user")
UNKNOWN = Answer("unknown", "the connection broke after the final dot")
SENT = Answer("sent", "250 queued as 4Zx")


@dataclass
class Scripted:
    """A transport that gives the answers it was told, one after the other, and remembers what it got."""

    answers: list[Answer]
    got: list[Outgoing] = field(default_factory=list)

    def check(self) -> Identity:
        return Identity("news", transport="maildir")

    def send(self, outgoing: Outgoing, deadline: float) -> Answer:
        self.got.append(outgoing)
        return self.answers.pop(0)

    def close(self) -> None:
        pass


def send(bus: Bus, *answers: Answer) -> list[Sent]:
    """Let a sender do one round over a transport that answers like this; every answer has to be used."""
    transport = Scripted(list(answers))
    opener = lambda *_: transport  # noqa: E731
    with Sender(bus.hub, bus.root, bus.state, {}, bus.now, opener=opener, forge=bus.proof) as sender:
        done = sender.round()
    assert transport.answers == []
    return done


def on(bus: Bus) -> None:
    bus.set_config("sending.enabled", True)


def state(bus: Bus, item: str = ITEM) -> str:
    return bus.board().items[item].state


def approved_item(world: World, **how: Any) -> Bus:
    """Bring one item to where it may be sent."""
    bus = waiting_item(world, **how)
    bus.approve([ITEM])
    on(bus)
    return bus


def nothing_to_object(bus: Bus, *rules: str) -> None:
    """Assert that the audit finds these rules broken, and no other; none by default."""
    tip = bus.hub.look()[bus.hub.main]
    found = audit_bus(bus.hub.store, tip, bus.root, now=bus.now()).findings
    assert sorted({one.rule for one in found}) == sorted(rules), found


def add_person(bus: Bus, world: World, name: str, *roles: str) -> Bus:
    """Add a person by the approver's decision, and return the bus as he sees it, from a clone of his own."""
    email = f"{name}@acme.example"
    key = making.make_key(world.folder / "keys" / name, email)
    place = len(bus.effective().bus.people)
    bus.set_config(f"people.{place}", {"id": name, "email": email, "roles": list(roles), "keys": [key]})
    theirs = another_clone(world, name)
    making.use_key(theirs.clone, world.folder / "keys" / name, name.title(), email)
    return theirs.open()


@dataclass
class Elsewhere(World):
    """The same hub from another clone."""

    name: str = "elsewhere"

    @property
    def clone(self) -> Path:
        return self.folder / f"clone-{self.name}"


def another_clone(world: World, name: str) -> Elsewhere:
    there = Elsewhere(world.folder, world.clock, name)
    world.git("clone", "--quiet", str(world.hub), str(there.clone))
    return there


def as_direct(world: World) -> None:
    """Leave the hub as it is made: on a path, so that actors write to it directly."""


def as_push(world: World) -> None:
    """Give the hub a hook of its own, so that everything has to be pushed."""
    hook = world.hub / "hooks" / "post-receive"
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)


Tree = Mapping[str, bytes | Entry | None]


def hand_commit(bus: Bus, worker: str, *trees: Tree, on: Oid | None = None, merge: Oid | None = None) -> Oid:
    """Commit on a worker's branch with plain git objects, as no WorkerActor would; return the new tip."""
    refs = bus.hub.look()
    ref = paths.WORKERS + worker
    tip = on or refs[bus.hub.main]
    store = bus.hub.store
    for index, files in enumerate(trees):
        tree = store.write_tree(store.commit(tip).tree, dict(files))
        sides = (merge,) if merge and index == len(trees) - 1 else ()
        tip = store.write_commit(
            Draft(tree, (tip, *sides), f"by hand {index}\n", Author("m", "m@x"), bus.now())
        )
    assert bus.hub.move([RefMove(ref, refs.get(ref), tip, replace=True)]).moved(ref)
    return tip


def entry(bus: Bus, data: bytes, mode: int = FILE) -> Entry:
    """Write a blob and return it as an entry of this mode."""
    return Entry(mode, bus.hub.store.write_blob(data))


@contextmanager
def opened(make: Callable[[], Bus]) -> Any:
    bus = make()
    try:
        yield bus
    finally:
        bus.close()


def outcomes(done: Sequence[Sent]) -> list[str]:
    return [one.outcome for one in done]


def vandalise(bus: Bus, files: Tree) -> Oid:
    """Commit on the bus's branch what nobody should, and return the tip before."""
    store, tip = bus.hub.store, bus.hub.look()[bus.hub.main]
    tree = store.write_tree(store.commit(tip).tree, dict(files))
    made = store.write_commit(Draft(tree, (tip,), "oops\n", Author("m", "m@x"), bus.now()))
    assert bus.hub.move([RefMove(bus.hub.main, tip, made)]).moved(bus.hub.main)
    return tip
