"""Git's objects as bytes and back: trees, commits, and the order that git sorts a tree in.

Example: ``parse_tree(render_tree(entries)) == entries``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from gitbus.history import TREE, Commit, Entry, Ident, Oid

_IDENT = re.compile(rb"(.*?) ?<([^<>\n]*)> (-?\d{1,12}) ([+-]\d{4})")


def oid_of(kind: str, data: bytes) -> Oid:
    """Return the id of an object (SHA-1 object format)."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).hexdigest()


def parse_tree(data: bytes) -> dict[str, Entry]:
    """Return a tree's entries by name; a name that is no UTF-8 keeps its bytes as surrogates."""
    entries: dict[str, Entry] = {}
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        name = data[space + 1 : end].decode("utf-8", "surrogateescape")
        entries[name] = Entry(int(data[at:space], 8), data[end + 1 : end + 21].hex())
        at = end + 21
    return entries


def render_tree(entries: Mapping[str, Entry]) -> bytes:
    """Return a tree object's bytes; git sorts a folder as if its name ended with a slash."""
    named = [(name.encode("utf-8", "surrogateescape"), entry) for name, entry in entries.items()]
    named.sort(key=lambda one: one[0] + b"/" if one[1].mode == TREE else one[0])
    return b"".join(b"%o %s\0" % (entry.mode, name) + bytes.fromhex(entry.oid) for name, entry in named)


def parse_commit(oid: Oid, data: bytes) -> Commit:
    """Return a commit. Headers that stand there more often than git writes them make it unsigned-looking.

    A second ``gpgsig`` header, or one for another hash, leaves ``signature`` as the bytes of all of
    them, which no verification accepts.
    """
    head, _, message = data.partition(b"\n\n")
    headers = _headers(head)
    first = dict(reversed(headers))
    signatures = [value for name, value in headers if name in (b"gpgsig", b"gpgsig-sha256")]
    return Commit(
        oid=oid,
        tree=first[b"tree"].decode(),
        parents=tuple(value.decode() for name, value in headers if name == b"parent"),
        author=_ident(first[b"author"]),
        committer=_ident(first[b"committer"]),
        message=message.decode("utf-8", "replace"),
        signature=b"\n".join(signatures).decode("ascii", "replace") if signatures else None,
    )


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


def render_commit(tree: Oid, parents: tuple[Oid, ...], author: str, committer: str, message: str) -> bytes:
    """Return an unsigned commit's bytes; ``author`` and ``committer`` are whole lines."""
    lines = [
        f"tree {tree}",
        *(f"parent {one}" for one in parents),
        f"author {author}",
        f"committer {committer}",
    ]
    return ("\n".join(lines) + "\n\n" + message).encode("utf-8")


def split_signature(data: bytes) -> tuple[bytes, list[bytes]]:
    """Return the bytes that a commit's signature covers, and the values of its signature headers."""
    head, separator, message = data.partition(b"\n\n")
    kept: list[bytes] = []
    signatures: list[bytes] = []
    inside = False
    for line in head.split(b"\n"):
        if inside and line.startswith(b" "):
            signatures[-1] += b"\n" + line[1:]
            continue
        name, _, value = line.partition(b" ")
        inside = name in (b"gpgsig", b"gpgsig-sha256")
        if inside:
            signatures.append(value)
        else:
            kept.append(line)
    return b"\n".join(kept) + separator + message, signatures
