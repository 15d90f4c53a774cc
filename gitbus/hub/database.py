"""Raw objects of one repository: one long-lived reader, and writing that is durable before it counts.

Few objects are written as loose ones, many as one pack: a pack costs two fsyncs whatever is in it.

Example: ``Database(git).read(oid)`` returns ``("blob", b"…")``.
"""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gitdb.base import OStream
from gitdb.pack import PackEntity

from gitbus.effects import effect
from gitbus.errors import Unreachable
from gitbus.history import Oid
from gitbus.hub.run import Git

LOOSE = 8
"""Up to so many objects are written loose, more as one pack."""

_CACHED = 64 << 20


class Database:
    """The objects of one repository.

    Args:
        git: the repository whose object store is read and written.
    """

    def __init__(self, git: Git) -> None:
        self.git = git
        self.objects = git.git_dir / "objects"
        self._reader: subprocess.Popen[bytes] | None = None
        self._cache: OrderedDict[Oid, tuple[str, bytes]] = OrderedDict()
        self._cached = 0
        self.pending: dict[Oid, tuple[str, bytes]] = {}

    # --- reading

    def read(self, oid: Oid) -> tuple[str, bytes]:
        """Return an object's kind and bytes.

        Raises:
            KeyError: there is none of this id.
        """
        found = self.pending.get(oid) or self._cache.get(oid)
        if found is None:
            kind, size = self._ask(f"contents {oid}", oid)
            found = (kind, self._take(size))
            self._keep(oid, found)
        elif oid in self._cache:
            self._cache.move_to_end(oid)
        return found

    def size(self, oid: Oid) -> int:
        """Return an object's size in bytes.

        Raises:
            KeyError: there is none of this id.
        """
        found = self.pending.get(oid) or self._cache.get(oid)
        return len(found[1]) if found else self._ask(f"info {oid}", oid)[1]

    def _ask(self, request: str, oid: Oid) -> tuple[str, int]:
        reader = self._process()
        if reader.stdin is None or reader.stdout is None:
            raise KeyError(oid)
        try:
            reader.stdin.write(request.encode() + b"\n")
            reader.stdin.flush()
        except BrokenPipeError:
            self.close()
            raise Unreachable(f"{self.git.git_dir} cannot be read", rule="hub-gone") from None
        answer = reader.stdout.readline().split()
        if len(answer) != 3:
            if not answer:
                self.close()
                raise Unreachable(f"{self.git.git_dir} cannot be read", rule="hub-gone")
            raise KeyError(oid)
        return answer[1].decode(), int(answer[2])

    def _take(self, size: int) -> bytes:
        reader = self._process()
        if reader.stdout is None:
            raise Unreachable(f"{self.git.git_dir} cannot be read", rule="hub-gone")
        data = reader.stdout.read(size + 1)
        return data[:-1]

    def _process(self) -> subprocess.Popen[bytes]:
        if self._reader is None or self._reader.poll() is not None:
            self._reader = self.git.start("cat-file", "--batch-command")
        return self._reader

    def _keep(self, oid: Oid, found: tuple[str, bytes]) -> None:
        if len(found[1]) > _CACHED // 16:
            return
        self._cache[oid] = found
        self._cached += len(found[1]) + 200
        while self._cached > _CACHED:
            _, (_, data) = self._cache.popitem(last=False)
            self._cached -= len(data) + 200

    def close(self) -> None:
        """End the reader."""
        if self._reader is not None:
            if self._reader.stdin:
                self._reader.stdin.close()
            if self._reader.stdout:
                self._reader.stdout.close()
            self._reader.terminate()
            self._reader.wait()
            self._reader = None

    # --- writing

    def write(self, oid: Oid, kind: str, data: bytes) -> None:
        """Take an object; it can be read at once and is durable after :meth:`flush`."""
        if oid not in self._cache:
            self.pending[oid] = (kind, data)

    def flush(self) -> None:
        """Make what was written durable.

        Raises:
            Unreachable: the disk does not take it (rule ``disk``); the objects stay pending.
        """
        if not self.pending:
            return
        effect("object-write", f"{len(self.pending)} objects")
        try:
            if len(self.pending) <= LOOSE:
                self._write_loose(self.pending)
            else:
                self._write_pack(self.pending)
        except OSError as error:
            raise Unreachable(
                f"objects cannot be written to {self.objects}: {error.strerror}",
                rule="disk",
                remedy="free some space or mend the rights; nothing was changed",
            ) from None
        for oid, found in self.pending.items():
            self._keep(oid, found)
        self.pending = {}

    def _write_loose(self, objects: Mapping[Oid, tuple[str, bytes]]) -> None:
        folders = set()
        for oid, (kind, data) in objects.items():
            folder = self.objects / oid[:2]
            target = folder / oid[2:]
            if target.exists():
                continue
            folder.mkdir(exist_ok=True)
            whole = b"%s %d\0" % (kind.encode(), len(data)) + data
            with _temporary(folder) as (handle, name):
                _write_all(handle, zlib.compress(whole, 1))
                _durable(handle, name)
                name.chmod(0o444)
                name.replace(target)
            folders.add(folder)
        for folder in folders:
            sync_folder(folder)

    def _write_pack(self, objects: Mapping[Oid, tuple[str, bytes]]) -> None:
        folder = self.objects / "pack"
        folder.mkdir(exist_ok=True)
        pack, index = io.BytesIO(), io.BytesIO()
        streams = [
            OStream(bytes.fromhex(oid), kind.encode(), len(data), io.BytesIO(data))
            for oid, (kind, data) in objects.items()
        ]
        checksum, _ = PackEntity.write_pack(
            streams, pack.write, index.write, object_count=len(streams), zlib_compression=1
        )
        stem = folder / f"pack-{checksum.hex()}"
        for content, target in ((pack, stem.with_suffix(".pack")), (index, stem.with_suffix(".idx"))):
            with _temporary(folder) as (handle, name):
                _write_all(handle, content.getvalue())
                _durable(handle, name)
                name.chmod(0o444)
                name.replace(target)
        sync_folder(folder)


@contextmanager
def _temporary(folder: Path) -> Iterator[tuple[int, Path]]:
    handle, name = tempfile.mkstemp(prefix="tmp_obj_", dir=folder)
    path = Path(name)
    try:
        yield handle, path
    finally:
        os.close(handle)
        path.unlink(missing_ok=True)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _durable(handle: int, name: Path) -> None:
    effect("fsync", name.name)
    os.fsync(handle)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    effect("fsync", folder.name)
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
