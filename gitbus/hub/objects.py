"""Git's objects as bytes and back: trees, commits, and the order that git sorts a tree in.

Rules: a commit's headers are read where git reads them, so that nobody can show us other parents
than git. An entry that no honest tree can hold (a name twice, a slash in a name) is shown under a
name that no path can have, so that whoever judges paths refuses it.

Example: ``parse_tree(render_tree(entries)) == entries``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from gitbus.errors import Refused
from gitbus.history import TREE, Commit, Entry, Ident, Oid

OID = re.compile(r"[0-9a-f]{40}")
"""The form of an object id."""

ODD = "\0"
"""What the shown name of an entry begins with that git's own fsck would refuse."""

_HEX = rb"[0-9a-fA-F]{40}"
_TREE_LINE = re.compile(rb"tree (" + _HEX + rb")\n")
_PARENT_LINE = re.compile(rb"parent (" + _HEX + rb")\n")
_ENTRY = re.compile(rb"([0-7]+) ([^\0]*)\0(.{20})", re.DOTALL)
_IDENT = re.compile(rb"(.*?) ?<([^<>\n]*)> (-?\d{1,18}) ([+-]\d{4})", re.DOTALL)


def oid_of(kind: str, data: bytes) -> Oid:
    """Return the id of an object (SHA-1 object format)."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).hexdigest()


def parse_tree(data: bytes) -> dict[str, Entry]:
    """Return a tree's entries by name; a name that is no UTF-8 keeps its bytes as surrogates.

    Raises:
        ValueError: these bytes are no tree.
    """
    entries: dict[str, Entry] = {}
    modes: dict[bytes, int] = {}
    at = 0
    for match in _ENTRY.finditer(data):
        if match.start() != at:
            break
        at = match.end()
        mode, raw, oid = match.groups()
        name = raw.decode("utf-8", "surrogateescape")
        while name in entries or "/" in name or not name:
            name = ODD + name.replace("/", ODD)
        if mode not in modes:
            modes[mode] = int(mode, 8)
        entries[name] = Entry(modes[mode], oid.hex())
    if at != len(data):
        raise ValueError("these bytes are no tree")
    return entries


def render_tree(entries: Mapping[str, Entry]) -> bytes:
    """Return a tree object's bytes; git sorts a folder as if its name ended with a slash.

    Raises:
        Refused: an entry is one that was only shown under an odd name (rule ``broken-tree``).
    """
    named = [(name.encode("utf-8", "surrogateescape"), entry) for name, entry in entries.items()]
    named.sort(key=lambda one: one[0] + b"/" if one[1].mode == TREE else one[0])
    if named and named[0][0].startswith(ODD.encode()):  # they sort first
        raise Refused(
            f"a folder holds an entry that no git can read: {named[0][0]!r}",
            rule="broken-tree",
            remedy="restore the folder from a commit before it was broken: git checkout COMMIT -- FOLDER",
        )
    return b"".join(b"%o %s\0" % (entry.mode, name) + bytes.fromhex(entry.oid) for name, entry in named)


def parse_commit(oid: Oid, data: bytes) -> Commit:
    """Return a commit.

    The tree comes first and the parents right after it; a ``parent`` line further down is none, as
    it is none to git. More than one signature header leaves ``signature`` as all of them, which
    verification refuses.

    Raises:
        ValueError: these bytes are no commit.
    """
    tree, parents, at = _ancestry(data)
    head, _, message = data.partition(b"\n\n")
    rest = _headers(head[at:])
    first = dict(reversed(rest))
    signatures = [value for name, value in rest if name.startswith(b"gpgsig")]
    return Commit(
        oid=oid,
        tree=tree,
        parents=parents,
        author=_ident(first.get(b"author", b"")),
        committer=_ident(first.get(b"committer", b"")),
        message=message.decode("utf-8", "replace"),
        signature=b"\n".join(signatures).decode("ascii", "replace") if signatures else None,
    )


def _ancestry(data: bytes) -> tuple[Oid, tuple[Oid, ...], int]:
    """Return the tree, the parents, and where the other headers begin, as git's ``parse_commit_buffer`` does.

    An id in capitals is one to git; a line that begins like a parent and is none makes the whole no commit.
    """
    match = _TREE_LINE.match(data)
    if match is None:
        raise ValueError("these bytes are no commit")
    tree, at = match[1].decode().lower(), match.end()
    parents: list[Oid] = []
    while match := _PARENT_LINE.match(data, at):
        parents.append(match[1].decode().lower())
        at = match.end()
    if data.startswith(b"parent ", at):
        raise ValueError("a parent of this commit is no object id")
    return tree, tuple(parents), at


def _headers(head: bytes) -> list[tuple[bytes, bytes]]:
    found: list[tuple[bytes, bytes]] = []
    for line in head.split(b"\n"):
        if line.startswith(b" ") and found:
            name, value = found[-1]
            found[-1] = (name, value + b"\n" + line[1:])
        else:
            name, _, value = line.partition(b" ")
            found.append((name, value))
    return found


def _ident(raw: bytes) -> Ident:
    match = _IDENT.fullmatch(raw)
    text = raw.decode("utf-8", "replace")
    if not match:
        return Ident("", "", datetime.fromtimestamp(0, UTC), text)
    try:
        when = datetime.fromtimestamp(int(match[3]), UTC)
    except (OverflowError, ValueError, OSError):
        when = datetime.max.replace(tzinfo=UTC)
    return Ident(match[1].decode("utf-8", "replace"), match[2].decode("utf-8", "replace"), when, text)


def render_commit(tree: Oid, parents: tuple[Oid, ...], who: str, message: str) -> bytes:
    """Return an unsigned commit's bytes; ``who`` is the whole line of both author and committer."""
    lines = [f"tree {tree}", *(f"parent {one}" for one in parents), f"author {who}", f"committer {who}"]
    return ("\n".join(lines) + "\n\n").encode() + message_bytes(message)


def message_bytes(message: str) -> bytes:
    """Return a message as it goes into a commit: UTF-8, no NUL, a newline at its end."""
    text = message.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return (text if text.endswith("\n") else text + "\n").encode("utf-8", "replace")


def split_signature(data: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return the bytes that a commit's signature covers, and its signature headers with their values."""
    head, separator, message = data.partition(b"\n\n")
    kept: list[bytes] = []
    signatures: list[tuple[bytes, bytes]] = []
    inside = False
    for line in head.split(b"\n"):
        if inside and line.startswith(b" "):
            name, value = signatures[-1]
            signatures[-1] = (name, value + line[1:] + b"\n")
            continue
        name, _, value = line.partition(b" ")
        inside = name.startswith(b"gpgsig")
        if inside:
            signatures.append((name, value + b"\n"))
        else:
            kept.append(line)
    return b"\n".join(kept) + separator + message, signatures
