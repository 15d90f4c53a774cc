"""What every proof needs: who signed a commit, what it names, and what it changes.

Example: ``named_items("Merge branch 'gitbus/approve/a.mail.item'", "", "main")``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeVar

from gitbus import codec, paths
from gitbus.errors import Invalid
from gitbus.history import FILE, Commit, Delta, Entry, History, Oid, Signature
from gitbus.records import Bus, Person, Record
from gitbus.records.bus import key_body

R = TypeVar("R", bound=Record)

_NAME = r"'[^']+'"
_LIST = rf"(?:branch {_NAME}|branches {_NAME}(?:, {_NAME})* and {_NAME})"
_GROUP = rf"(?:(?:remote-tracking )?{_LIST})(?:, (?:remote-tracking )?{_LIST})*(?: of [^\s;']+)?"
_SUBJECT = re.compile(rf"Merge ({_GROUP}(?:; {_GROUP})*)(?: into ([^\s']+|'[^']+'))?")
_APPROVE = re.compile(r"(?:[^']+/)?gitbus/approve/([a-z0-9.-]+)")


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signed a commit, as far as some people's keys can tell."""

    person: Person | None
    key: str | None
    signature: Signature


def signer(history: History, commit: Oid, people: Iterable[Person]) -> Signer:
    """Return which of these people signed a commit."""
    owners = {key: person for person in people for key in person.keys}
    signature = history.signature(commit, tuple(owners))
    if signature.verdict != "good" or signature.key is None:
        return Signer(None, None, signature)
    return Signer(owners.get(signature.key), signature.key, signature)


def still_has(bus: Bus, person: str, key: str, roles: Collection[str]) -> bool:
    """Say whether a person has this key and one of the roles under a Bus."""
    found = bus.person(person)
    return (
        found is not None
        and bool(set(roles) & set(found.roles))
        and key_body(key) in map(key_body, found.keys)
    )


def made_by_committer(commit: Commit) -> bool:
    """Say whether a commit was made where it was committed: no rebase, no pick, no amend by another."""
    return commit.author.raw == commit.committer.raw


def trailers(message: str, key: str) -> tuple[str, ...]:
    """Return a trailer's values from the last block of a commit's message."""
    block = message.rstrip("\n").split("\n\n")[-1].split("\n")
    prefix = key.lower() + ":"
    return tuple(line[len(prefix) :].strip() for line in block if line.lower().startswith(prefix))


def merged_names(subject: str, branch: str) -> tuple[frozenset[str], str | None]:
    """Return the approval branches that git's own merge subject names, and the branch it says it is into.

    Args:
        subject: the first line of the message.
        branch: the bus's branch.
    """
    match = _SUBJECT.fullmatch(subject)
    if match is None:
        return frozenset(), None
    into = match[2].strip("'") if match[2] else None
    if into is not None and into != branch:
        return frozenset(), into
    names = (_APPROVE.fullmatch(name) for name in re.findall(r"'([^']+)'", match[1]))
    return frozenset(found[1] for found in names if found), into


def read_at(history: History, commit: Oid, path: str, model: type[R]) -> R | None:
    """Return the record at a path in a commit; None where there is none that can be read."""
    return read_entry(history, history.entry(commit, path), path, model)


def read_entry(history: History, entry: Entry | None, path: str, model: type[R]) -> R | None:
    """Return the record in a tree's entry; None where there is none that can be read."""
    if entry is None or entry.mode != FILE or history.size(entry.oid) > codec.LIMIT:
        return None
    try:
        return codec.read(history.blob(entry.oid), model, path=path)
    except Invalid:
        return None


def only_flips(history: History, deltas: Iterable[Delta]) -> Delta | None:
    """Return the first change that is no part of a flip; None where all are."""
    for delta in deltas:
        match delta.path.split("/"):
            case ["outbox", _, "approval.yaml"] if delta.old is None and delta.new and delta.new.mode == FILE:
                continue
            case ["outbox", _, "item.yaml"] if _flips_state(history, delta):
                continue
            case _:
                return delta
    return None


def _flips_state(history: History, delta: Delta) -> bool:
    if delta.old is None or delta.new is None or (delta.old.mode, delta.new.mode) != (FILE, FILE):
        return False
    old = history.blob(delta.old.oid).split(b"\n")
    new = history.blob(delta.new.oid).split(b"\n")
    changed = [(before, now) for before, now in zip(old, new, strict=False) if before != now]
    return (
        len(old) == len(new)
        and len(changed) == 1
        and changed[0][0] in (b"state: in_review", b"state: awaiting_approval")
        and changed[0][1] == b"state: approved"
    )


def combined(history: History, commit: Commit) -> list[str]:
    """Return the paths in which a merge differs from every one of its parents."""
    changed = [
        {delta.path for delta in history.diff(history.commit(parent).tree, commit.tree)}
        for parent in commit.parents
    ]
    return sorted(set.intersection(*changed)) if changed else []


def parent_tree(history: History, commit: Commit) -> Oid | None:
    """Return the tree of a commit's first parent; None for a root."""
    return history.commit(commit.parents[0]).tree if commit.parents else None


def brought(history: History, commit: Oid) -> tuple[Oid, ...]:
    """Return the commits that a commit of the line brought onto it, itself left out."""
    parents = history.commit(commit).parents
    if len(parents) < 2:
        return ()
    return tuple(oid for oid in history.between(parents[1:], parents[:1]))


def item_paths(item: str) -> tuple[str, ...]:
    """Return where an item may stand."""
    return (paths.item_folder(item),)
