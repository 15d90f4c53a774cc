"""What somebody with a push token may write on the branch against the tables: each is a finding of its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from gitbus import codec, paths
from gitbus.auditing import audit_bus
from gitbus.bus import Bus
from gitbus.history import EXECUTABLE, FILE, Entry, Oid
from gitbus.hub.base import Author, Draft
from gitbus.records import Approval, Goal, Item, Lease, Receipt, Record, Refusal, Report, Result, Review, Task
from gitbus.records.item import digest
from tests.journeys.driving import SENT, on, send
from tests.support.world import ITEM, START, World, make_world, waiting_item

FOLDER = paths.item_folder(ITEM)
BODY = f"{FOLDER}/body.txt"
MALLORY = Author("Mallory", "mallory@evil.example")
Files = Mapping[str, "Record | bytes | Entry | None"]
Attack = Callable[["Base"], Files]


@dataclass
class Base:
    """One bus whose item waited, was approved, sent and archived; attacks are commits on one of its tips."""

    bus: Bus
    tips: dict[str, Oid]
    tip: Oid = ""

    def read(self, path: str, model: type[Any]) -> Any:
        entry = self.bus.hub.store.entry(self.tip, path)
        assert entry is not None, path
        return codec.read(self.bus.hub.store.blob(entry.oid), model, path=path)

    def item(self, **fields: Any) -> Item:
        item: Item = self.read(paths.item(ITEM), Item)
        return item.model_copy(update=fields)

    def task(self, name: str = "mail", **fields: Any) -> Task:
        task: Task = self.read(paths.task("release", name), Task)
        return task.model_copy(update=fields)

    def commit(self, files: Files, message: str = "oops", on: Oid = "") -> Oid:
        store, parent = self.bus.hub.store, on or self.tip
        written = {path: codec.write(one) if isinstance(one, Record) else one for path, one in files.items()}
        tree = store.write_tree(store.commit(parent).tree, written)
        return store.write_commit(Draft(tree, (parent,), f"{message}\n", MALLORY, self.bus.now()))

    def found(self, tip: Oid) -> set[tuple[str, str, Oid]]:
        store, now = self.bus.hub.store, self.bus.now()
        audited = audit_bus(store, tip, self.bus.root, now=now)
        return {(one.rule, one.subject, one.commit) for one in audited.findings}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    world: World = make_world(tmp_path_factory.mktemp("edits"), policy={"sending": {"hold": "0s"}})
    with waiting_item(world) as bus:
        tips = {"waiting": bus.refs()[bus.hub.main]}
        on(bus)
        bus.approve([ITEM])
        tips["approved"] = bus.refs()[bus.hub.main]
        assert [one.outcome for one in send(bus, SENT)] == ["sent"]
        tips["sent"] = bus.refs()[bus.hub.main]
        world.clock.forward(days=2)
        assert bus.archive(timedelta(days=1)) is not None
        tips["archived"] = bus.refs()[bus.hub.main]
        yield Base(bus, tips)


@pytest.mark.parametrize("name", ["waiting", "approved", "sent", "archived"])
def test_an_honest_history_holds_none(base: Base, name: str) -> None:
    assert base.found(base.tips[name]) == set()


# --- an item's record: every field, where no move changes it

OTHER: dict[str, Any] = {
    "id": "release.mail.other",
    "revision": 2,
    "attempt": 2,
    "channel": "other",
    "message": None,
    "payload": (),
    "source": None,
    "send_at": START + timedelta(days=1),
    "together": "all",
    "claims": (),
    "confidence": 1.0,
    "scores": (),
    "expires_at": START + timedelta(days=300),
    "not_before": START,
    "reason": "because",
}


def changed(item: Item, name: str) -> Item:
    """Return an item with another value in one field."""
    if name == "message":
        return item.model_copy(
            update={"message": item.message.model_copy(update={"to": ("mallory@evil.example",)})}
        )
    if name == "payload":
        first = item.payload[0].model_copy(update={"bytes": 1})
        return item.model_copy(update={"payload": (first,)})
    if name == "source":
        return item.model_copy(
            update={"source": item.source.model_copy(update={"attempt": item.source.attempt + 1})}
        )
    return item.model_copy(update={name: OTHER[name]})


def told(item: Item) -> Item:
    """Return an item whose digest is that of what it says."""
    return item.model_copy(update={"digest": digest(item.channel, item.message, item.payload, item.send_at)})


@pytest.mark.parametrize("tip", ["waiting", "approved", "sent"])
@pytest.mark.parametrize("name", sorted(set(Item.model_fields) - {"apiVersion", "kind", "state", "digest"}))
def test_no_field_of_an_item_changes_by_itself(base: Base, name: str, tip: str) -> None:
    base.tip = base.tips[tip]
    old = base.item()
    new = told(changed(old, name))
    assert new != old
    made = base.commit({paths.item(ITEM): new})
    assert ("unproved-edit", ITEM, made) in base.found(made)


@pytest.mark.parametrize(
    ("tip", "state"),
    [
        ("waiting", "scored"),
        ("waiting", "persisted"),
        ("waiting", "sending"),
        ("waiting", "sent"),
        ("approved", "sent"),
        ("approved", "failed"),
        ("sent", "approved"),
        ("sent", "awaiting_approval"),
        ("sent", "withdrawn"),
    ],
)
def test_no_state_is_jumped_to(base: Base, tip: str, state: str) -> None:
    base.tip = base.tips[tip]
    made = base.commit({paths.item(ITEM): base.item(state=state)})
    rules = {rule for rule, subject, commit in base.found(made) if (subject, commit) == (ITEM, made)}
    assert rules & {"illegal-move", "unproved-edit", "sent-unproved"}


def test_a_digest_of_something_else_is_no_item(base: Base) -> None:
    base.tip = base.tips["waiting"]
    made = base.commit({paths.item(ITEM): base.item(digest="sha256:" + "0" * 64)})
    assert ("unreadable", paths.item(ITEM), made) in base.found(made)


# --- what stands beside it, goals, tasks, results, and what has no place


def _other_task(base: Base) -> Item:
    return base.item(id="release.write.news", state="persisted", confidence=0.9)


def _lease(base: Base) -> Files:
    base.tip = base.tips["sent"]
    lease: Lease = base.read(paths.lease(ITEM, 1), Lease)
    base.tip = base.tips["waiting"]
    return {paths.lease(ITEM, 1): lease}


def _approval(base: Base) -> Files:
    base.tip = base.tips["approved"]
    approval: Approval = base.read(paths.approval(ITEM), Approval)
    base.tip = base.tips["waiting"]
    return {paths.approval(ITEM): approval}


def _review(person: str, said: str) -> Attack:
    return lambda base: {
        paths.review(ITEM, person): Review(
            item=ITEM, revision=1, digest=base.item().digest, person=said, verdict="ok", at=START
        )
    }


def _goal(base: Base) -> Files:
    goal: Goal = base.read(paths.goal("release"), Goal)
    node = goal.tasks["mail"].model_copy(update={"capability": "other"})
    return {paths.goal("release"): goal.model_copy(update={"tasks": {**goal.tasks, "mail": node}})}


def _report(base: Base) -> Files:
    report: Report = base.read(paths.report("release"), Report)
    return {paths.report("release"): report.model_copy(update={"state": "failed"})}


def _result(base: Base) -> Files:
    result: Result = base.read(paths.result("release", "mail"), Result)
    return {paths.result("release", "mail"): result.model_copy(update={"outputs": {"text": "Pay me"}})}


ATTACKS: dict[str, tuple[str, str, Attack]] = {
    "the text": ("unproved-edit", ITEM, lambda _: {BODY: b"Pay me\n"}),
    "the text is gone": ("unproved-edit", ITEM, lambda _: {BODY: None}),
    "the text may be run": (
        "unproved-edit",
        ITEM,
        lambda base: {BODY: Entry(EXECUTABLE, base.bus.hub.store.entry(base.tip, BODY).oid)},  # type: ignore[union-attr]
    ),
    "one file more": ("unproved-edit", ITEM, lambda _: {f"{FOLDER}/more.txt": b"x\n"}),
    "an approval without its state": ("unproved-edit", ITEM, _approval),
    "a lease, and nothing is sent": ("unproved-edit", ITEM, _lease),
    "a review that says another person": ("unproved-edit", ITEM, _review("ada", "bob")),
    "the item is gone": (
        "item-removed",
        ITEM,
        lambda _: {paths.item(ITEM): None, BODY: None},
    ),
    "an item that nobody proposed": (
        "unproved-edit",
        "release.write.news",
        lambda base: {
            paths.item("release.write.news"): _other_task(base),
            "outbox/release.write.news/body.txt": base.bus.hub.store.entry(base.tip, BODY),
        },
    ),
    "an item that begins where it waits": (
        "illegal-move",
        "release.write.news",
        lambda base: {
            paths.item("release.write.news"): _other_task(base).model_copy(
                update={"state": "awaiting_approval"}
            )
        },
    ),
    "the goal": ("unproved-edit", "release", _goal),
    "the goal is gone": ("unproved-edit", "release", lambda _: {paths.goal("release"): None}),
    "the report": ("unproved-edit", "release", _report),
    "a result": ("unproved-edit", "release/mail", _result),
    "a result is gone": (
        "unproved-edit",
        "release/mail",
        lambda _: {paths.result("release", "mail"): None},
    ),
    "a task is gone": ("unproved-edit", "release/mail", lambda _: {paths.task("release", "mail"): None}),
    "a task that was done": (
        "unproved-edit",
        "release/mail",
        lambda base: {paths.task("release", "mail"): base.task(worker="mallory")},
    ),
    "a task's attempt": (
        "unproved-edit",
        "release/mail",
        lambda base: {paths.task("release", "mail"): base.task(attempt=7)},
    ),
    "a task that no goal has": (
        "illegal-move",
        "release/more",
        lambda base: {paths.task("release", "more"): base.task(id="more")},
    ),
    "a refusal of another task's answer": (
        "unproved-edit",
        "release/mail",
        lambda _: {
            paths.refusal("release", "mail", 1): Refusal(
                goal="release",
                task="write",
                attempt=1,
                worker="laptop",
                tip="1" * 40,
                rule="x",
                place="1:1",
                message="x",
                at=START,
            )
        },
    ),
    "an artifact": (
        "unproved-edit",
        "release/mail",
        lambda _: {"goals/release/artifacts/mail/x.txt": b"x\n"},
    ),
    "no place in a goal": ("unproved-edit", "release", lambda _: {"goals/release/notes.txt": b"x\n"}),
    "no place in the outbox": ("unproved-edit", "outbox/x.txt", lambda _: {"outbox/x.txt": b"x\n"}),
}


@pytest.mark.parametrize("what", ATTACKS)
def test_nothing_is_written_that_no_move_writes(base: Base, what: str) -> None:
    rule, subject, attack = ATTACKS[what]
    base.tip = base.tips["waiting"]
    made = base.commit(attack(base))
    assert (rule, subject, made) in base.found(made), base.found(made)


@pytest.mark.parametrize("what", ATTACKS)
def test_whoever_puts_back_what_was_there_does_nothing_wrong(base: Base, what: str) -> None:
    _, _, attack = ATTACKS[what]
    base.tip = base.tips["waiting"]
    files = attack(base)
    wrong = base.commit(files)
    store = base.bus.hub.store
    back = base.commit({path: store.entry(base.tip, path) for path in files}, "put back", on=wrong)
    assert {commit for _, _, commit in base.found(back)} == {wrong}


def test_a_commit_changes_only_what_it_says(base: Base) -> None:
    """A withdrawal is anybody's; one that says that it assigns a task is a lie."""
    base.tip = base.tips["waiting"]
    files = {paths.item(ITEM): base.item(state="withdrawn")}
    honest = base.commit(files, "withdraw release.mail.news\n\nGitbus-Verb: withdraw")
    assert base.found(honest) == set()
    lie = base.commit(files, "assign release/mail\n\nGitbus-Verb: assign")
    assert ("unproved-edit", ITEM, lie) in base.found(lie)


# --- what was sent, and the archive


def _there(base: Base, path: str) -> str:
    return f"archive/{base.bus.now():%Y/%m}/{path}"


ARCHIVED: dict[str, Attack] = {
    "the text": lambda base: {_there(base, BODY): b"Pay me\n"},
    "one file more": lambda base: {_there(base, f"{FOLDER}/more.txt"): b"x\n"},
    "a receipt is gone": lambda base: {_there(base, f"{FOLDER}/receipt.1.yaml"): None},
    "a goal": lambda base: {_there(base, "goals/release/report.yaml"): None},
    "a goal that was never there": lambda base: {_there(base, "goals/other/goal.yaml"): b"x: 1\n"},
    "no place": lambda base: {"archive/notes.txt": b"x\n"},
}


@pytest.mark.parametrize("what", ARCHIVED)
def test_the_archive_stays(base: Base, what: str) -> None:
    base.tip = base.tips["archived"]
    made = base.commit(ARCHIVED[what](base))
    assert made in {commit for _, _, commit in base.found(made)}


@pytest.mark.parametrize("path", [paths.lease(ITEM, 1), paths.receipt(ITEM, 1)])
@pytest.mark.parametrize("how", ["gone", "changed"])
def test_what_was_said_of_a_transmission_stays(base: Base, path: str, how: str) -> None:
    base.tip = base.tips["sent"]
    model: type[Lease] | type[Receipt] = Lease if "/lease." in path else Receipt
    field = "holder" if model is Lease else "sender"
    record = base.read(path, model).model_copy(update={field: "mallory:1"})
    made = base.commit({path: None if how == "gone" else record})
    assert ("evidence-changed", ITEM, made) in base.found(made)


def test_what_is_archived_before_it_is_over(base: Base) -> None:
    base.tip = base.tips["waiting"]
    store = base.bus.hub.store
    folder = store.entry(base.tip, FOLDER)
    assert folder is not None
    made = base.commit({FOLDER: None, f"archive/2026/11/{FOLDER}": folder})
    assert ("unproved-edit", ITEM, made) in base.found(made)
    assert folder.mode != FILE
