"""What a branch that waits to be merged would bring: records that are right or wrong, and what would be sent.

The branch is read as git has it, nothing is checked out. What is wrong with a record is found by the
conductor's own reader.

Example: ``proposal(store, "gitbus/approve/a.mail.item", tip, main).approvals`` maps the items that merging
approves to the text of their ``approval.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gitbus import codec, paths
from gitbus.codec import kind_of_path
from gitbus.errors import Invalid
from gitbus.history import FILE, Entry, Oid
from gitbus.hub.base import Store

BRANCHES = (paths.APPROVE, paths.DECIDE)
"""Below these stand the branches that people merge."""


@dataclass(frozen=True)
class Proposal:
    """What merging a branch would bring."""

    name: str  # of the branch, for people
    commit: Oid
    approvals: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Invalid, ...] = ()


def proposals(store: Store, refs: Mapping[str, Oid], main: Oid) -> Iterator[Proposal]:
    """Yield what each branch that waits to be merged would bring.

    Args:
        store: where the objects are.
        refs: the hub's refs.
        main: the tip of the bus's branch.
    """
    for ref, tip in sorted(refs.items()):
        if ref.startswith(BRANCHES):
            yield proposal(store, ref.removeprefix(paths.HEADS), tip, main)


def proposal(store: Store, name: str, tip: Oid, main: Oid) -> Proposal:
    """Return what merging one commit into the bus's branch would bring."""
    approvals: dict[str, str] = {}
    problems: list[Invalid] = []
    for path, entry in sorted(_brought(store, tip, main).items()):
        text, wrong = _read(store, path, entry)
        problems += wrong
        match path.split("/"):
            case ["outbox", item, "approval.yaml"] if text is not None:
                approvals[item] = text.decode("utf-8", "replace")
    return Proposal(name, tip, approvals, tuple(problems))


def _brought(store: Store, tip: Oid, main: Oid) -> dict[str, Entry]:
    """Return the files that a branch's own commits wrote and the bus's branch lacks, as they stand at its tip."""
    touched: set[str] = set()
    for oid in store.between([tip], [main]):
        commit = store.commit(oid)
        before = store.commit(commit.parents[0]).tree if commit.parents else None
        touched |= {delta.path for delta in store.diff(before, commit.tree)}
    found = {path: store.entry(tip, path) for path in touched}
    return {
        path: entry for path, entry in found.items() if entry is not None and entry != store.entry(main, path)
    }


def _read(store: Store, path: str, entry: Entry) -> tuple[bytes | None, list[Invalid]]:
    """Return a record's bytes and what is wrong with it; nothing for what is no record."""
    model = kind_of_path(path)
    if model is None:
        return None, []
    if entry.mode != FILE:
        return None, [Invalid("this is no plain file", rule="not-a-file", path=path)]
    if store.size(entry.oid) > codec.LIMIT:
        return None, [Invalid("the record is too large", rule="too-large", path=path)]
    text = store.blob(entry.oid)
    try:
        found = codec.problems(codec.load(text, path=path), model)
    except Invalid as error:
        return None, [error]
    return text, found if isinstance(found, list) else []
