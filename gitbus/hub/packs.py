r"""Packs of objects: many in one file, written whole, and read without asking git.

Rules: what is written holds every object whole. Of what others wrote, the objects that stand there
as differences from others are left to git, as is everything that looks unusual. A pack is a file
that never changes, so it can be read for as long as it is held, even after somebody rolled it up.
The formats are those of gitformat-pack(5), version 2 of pack and index.

Example: ``packed({oid: ("blob", b"hi\n")})`` gives the name and the bytes of a pack and its index;
``Packs(folder).find(oid)`` returns ``("blob", b"hi\n")`` once they are there.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitdb.fun import create_pack_object_header, pack_object_header_info
from gitdb.pack import IndexWriter

from gitbus.history import Oid

Raw = tuple[str, bytes]
"""An object's kind and its bytes."""

LARGE = 1 << 20
"""Objects of more bytes than these are left to git."""

SHORT = 1 << 13
"""Objects of fewer bytes than these are compressed as short ones."""

_CODES = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_KINDS = {code: kind for kind, code in _CODES.items()}
_FANOUT = struct.Struct(">256I")
_WORD = struct.Struct(">I")
_LONG = struct.Struct(">Q")
_IDS = 8 + _FANOUT.size
"""Where the ids begin in an index."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A pack's name, and the bytes of the pack and of its index."""

    name: str
    pack: bytes
    index: bytes


def packed(objects: Mapping[Oid, Raw]) -> Packed:
    """Return some objects as one pack."""
    parts = [b"PACK" + _WORD.pack(2) + _WORD.pack(len(objects))]
    at = len(parts[0])
    index = IndexWriter()
    for oid, (kind, data) in objects.items():
        entry = bytes(create_pack_object_header(_CODES[kind], len(data))) + _deflated(data)
        index.append(bytes.fromhex(oid), zlib.crc32(entry), at)
        parts.append(entry)
        at += len(entry)
    body = b"".join(parts)
    checksum = hashlib.sha1(body, usedforsecurity=False).digest()
    lines: list[bytes] = []
    index.write(checksum, lines.append)
    return Packed(f"pack-{checksum.hex()}", body + checksum, b"".join(lines))


def _deflated(data: bytes) -> bytes:
    """Compress; a short text with a window of its own size, since making a large one costs more than the work."""
    window, memory = (13, 5) if len(data) < SHORT else (15, 8)
    made = zlib.compressobj(1, zlib.DEFLATED, window, memory)
    return made.compress(data) + made.flush()


class Packs:
    """The packs of one object store, as far as they can be read here.

    Args:
        folder: the store's ``pack`` folder, which need not be there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, Pack | None] = {}  # None: git alone can read it
        self._order: list[Pack] = []  # the one that last held something comes first
        self._seen: int | None = None

    def find(self, oid: Oid) -> Raw | None:
        """Return an object; None where it is not here, or not to be read here."""
        place = self._place(oid)
        return place[0].read(place[1]) if place else None

    def size(self, oid: Oid) -> int | None:
        """Return an object's size in bytes; None where it is not here, or not to be read here."""
        place = self._place(oid)
        head = place[0].head(place[1]) if place else None
        return head[1] if head else None

    def _place(self, oid: Oid) -> tuple[Pack, int] | None:
        key = bytes.fromhex(oid)
        found = self._search(key)
        return self._search(key) if found is None and self._look() else found

    def _search(self, key: bytes) -> tuple[Pack, int] | None:
        for number, pack in enumerate(self._order):
            at = pack.offset(key)
            if at is not None:
                if number:
                    self._order.insert(0, self._order.pop(number))
                return pack, at
        return None

    def _look(self) -> bool:
        """Take in what is new in the folder and let go of what is gone; say whether there is something new."""
        try:
            now = self.folder.stat().st_mtime_ns
            if now == self._seen:
                return False
            names = [path.name for path in self.folder.glob("*.idx")]
        except FileNotFoundError:
            return False
        before, self._seen = self._known, now
        self._known = {
            name: before[name] if name in before else Pack.open(self.folder / name) for name in names
        }
        held = [pack for pack in self._known.values() if pack is not None]
        fresh = [pack for pack in held if pack not in self._order]
        self._order = fresh + [pack for pack in self._order if pack in held]
        return bool(fresh)


class Pack:
    """One pack, mapped into memory.

    Args:
        index: its index.
        data: the pack itself.

    Raises:
        ValueError: this is no index of the version that is read here.
    """

    def __init__(self, index: mmap.mmap, data: mmap.mmap) -> None:
        if index[:8] != b"\xfftOc" + _WORD.pack(2) or data[:8] != b"PACK" + _WORD.pack(2):
            raise ValueError("no pack of version 2")
        self._index = index
        self._data = data
        self._fanout = (0, *_FANOUT.unpack_from(index, 8))
        count = self._fanout[256]
        self._offsets = _IDS + count * 24  # behind the ids and the checksums
        self._far = self._offsets + count * 4
        if len(index) < self._far + 40:
            raise ValueError("the index is cut off")

    @classmethod
    def open(cls, index: Path) -> Pack | None:
        """Return the pack of an index; None where it cannot be read here."""
        try:
            return cls(_mapped(index), _mapped(index.with_suffix(".pack")))
        except (OSError, ValueError, struct.error):
            return None

    def offset(self, key: bytes) -> int | None:
        """Return where the object of this (binary) id stands in the pack; None where it does not."""
        low, high = self._fanout[key[0]], self._fanout[key[0] + 1]
        index = self._index
        while low < high:
            middle = (low + high) // 2
            at = _IDS + middle * 20
            there = index[at : at + 20]
            if there == key:
                return self._numbered(middle)
            if there < key:
                low = middle + 1
            else:
                high = middle
        return None

    def _numbered(self, number: int) -> int:
        (at,) = _WORD.unpack_from(self._index, self._offsets + number * 4)
        if at & 1 << 31:
            (at,) = _LONG.unpack_from(self._index, self._far + (at & ~(1 << 31)) * 8)
        return int(at)

    def head(self, at: int) -> tuple[str, int, int] | None:
        """Return kind, size, and where the bytes begin, of the object at a place; None for a difference."""
        code, size, used = pack_object_header_info(self._data[at : at + 16])
        kind = _KINDS.get(code)
        return (kind, size, at + used) if kind else None

    def read(self, at: int) -> Raw | None:
        """Return the object at a place; None where it is a difference, large, or damaged."""
        head = self.head(at)
        if head is None or head[1] > LARGE:
            return None
        kind, size, begin = head
        data = _inflated(self._data[begin : begin + size + size // 512 + 64], size)
        return (kind, data) if data is not None and len(data) == size else None


def loose(objects: Path, oid: Oid) -> Raw | None:
    """Return an object that has a file of its own; None where it has none, or is large or damaged."""
    try:
        with Path(f"{objects}/{oid[:2]}/{oid[2:]}").open("rb") as file:
            whole = _inflated(file.read(2 * LARGE), LARGE + 64)
    except OSError:
        return None
    head, _, data = (whole or b"").partition(b"\0")
    kind, _, size = head.decode("ascii", "replace").partition(" ")
    fits = kind in _CODES and size == str(len(data)) and len(data) <= LARGE
    return (kind, data) if fits else None


def _inflated(data: bytes, most: int) -> bytes | None:
    """Return what was compressed, as far as it has no more than ``most`` bytes; None where it is damaged."""
    try:
        return zlib.decompressobj().decompress(data, max(most, 1))
    except zlib.error:
        return None


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
