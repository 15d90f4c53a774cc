"""What a commit's message names: trailers in its last block, and git's own subject of a merge.

Rules: a trailer counts only in a last block that is nothing but trailers. A subject counts only
where all of it is what git writes for branches: one or several, local or remote-tracking, with or
without ``of <url>`` and ``into <branch>``. Anything else names nothing.

Source of the grammar: ``fmt_merge_msg_title`` of git's fmt-merge-msg.c.

Example: ``merged("Merge branch 'gitbus/approve/a.mail.item' into main").approve`` is
``frozenset({"a.mail.item"})``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ACCEPT = "Gitbus-Accept-History"
BUS = "Gitbus-Bus"
ITEM = "Gitbus-Item"
VERB = "Gitbus-Verb"

_TRAILER = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*):[ \t]*(\S.*)")
_TAGGED = re.compile(r"Merge .*\btags? '")
_SQUASH = re.compile(r"^Squashed commit of the following:$", re.MULTILINE)

_NAME = r"'[^'\s]+'"
_BRANCHES = rf"(?:remote-tracking )?(?:branch {_NAME}|branches {_NAME}(?:, {_NAME})* and {_NAME})"
_SOURCE = rf"{_BRANCHES}(?:, {_BRANCHES})*(?: of [^';\n]+?)?"
_MERGE = re.compile(rf"Merge ({_SOURCE}(?:; {_SOURCE})*)(?: into (\S+))?")
_GROUP = re.compile(rf"(remote-tracking )?branch(?:es)? ({_NAME}(?:(?:, | and ){_NAME})*)")
_QUOTED = re.compile(r"'([^'\s]+)'")
_PURPOSE = re.compile(r"(?:(?:refs/)?heads/)?gitbus/(approve|decide)/([a-z0-9][a-z0-9.-]*)")
_FAR_PURPOSE = re.compile(r"\S+?/gitbus/(approve|decide)/([a-z0-9][a-z0-9.-]*)")


@dataclass(frozen=True, slots=True)
class Merged:
    """What git's subject of a merge says was merged: names below ``gitbus/approve/`` and ``gitbus/decide/``."""

    approve: frozenset[str] = frozenset()
    decide: frozenset[str] = frozenset()
    into: str | None = None


def trailers(message: str, key: str) -> tuple[str, ...]:
    """Return a trailer's values, in their order.

    Nothing where the last block holds anything else, or where git merged a tag: then the tag's own
    message stands there, and a tag may be anybody's.
    """
    first, *blocks = re.split(r"\n{2,}", message.strip("\n"))
    if not blocks or _TAGGED.match(first):
        return ()
    found = [_TRAILER.fullmatch(line) for line in blocks[-1].split("\n")]
    if not all(found):
        return ()
    return tuple(match[2].strip() for match in found if match and match[1].lower() == key.lower())


def is_squash(message: str) -> bool:
    """Say whether the message is what ``git merge --squash`` proposes."""
    return _SQUASH.search(message) is not None


def merged(subject: str) -> Merged:
    """Return what git's own subject of a merge names; nothing where it is another text."""
    match = _MERGE.fullmatch(subject)
    if match is None:
        return Merged()
    named: dict[str, set[str]] = {"approve": set(), "decide": set()}
    for far, names in _GROUP.findall(match[1]):
        for name in _QUOTED.findall(names):
            found = (_FAR_PURPOSE if far else _PURPOSE).fullmatch(name)
            if found:
                named[found[1]].add(found[2])
    return Merged(frozenset(named["approve"]), frozenset(named["decide"]), match[2])


def short_branch(ref: str) -> str:
    """Return a branch's name without ``refs/heads/``."""
    return ref.removeprefix("refs/heads/")
