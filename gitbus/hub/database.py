"""Raw objects of one repository: reading what is near without git, and writing that is durable before it counts.

Rules: what can be read from the store's files is, and a long-lived git is asked for the rest; what
was written is readable at once and on disk after :meth:`Database.flush`, or not at all;
few objects are written as loose ones, many as one pack, which costs two fsyncs whatever is in it.

Example: ``Database(git).read(oid)`` returns ``("blob", b"…")``.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gitbus.effects import effect
from gitbus.errors import Unreachable
from gitbus.history import Oid
from gitbus.hub.objects import OID
from gitbus.hub.packs import Packs, Raw, loose, packed
from gitbus.hub.run import Git, no_git

LOOSE = 2
"""Up to so many objects are written loose, more as one pack."""

TOGETHER = 250
"""Objects asked for in one exchange: their requests fit into a pipe, so that neither side waits for the other."""

TRIES = 10
"""So often writing begins anew because a clean-up was at work in the same store."""

CACHED = 64 << 20
"""Bytes of objects that are kept in memory."""


class Database:
    """The objects of one repository.

    Args:
        git: the repository whose object store is read and written.
    """

    def __init__(self, git: Git) -> None:
        self.git = git
        self.objects = git.git_dir / "objects"
        self.pending: dict[Oid, Raw] = {}
        self.lent: dict[Oid, Raw] = {}
        """Objects that can be read but are not to be written, as long as nothing written needs them."""
        self._packs = Packs(self.objects / "pack")
        self._reader: subprocess.Popen[bytes] | None = None
        self._talking = threading.RLock()
        self._cache: OrderedDict[Oid, Raw] = OrderedDict()
        self._cached = 0

    # --- reading

    def read(self, oid: Oid) -> Raw:
        """Return an object's kind and bytes.

        Raises:
            KeyError: there is none of this id.
            Unreachable: the repository cannot be read.
        """
        with self._talking:
            found = self._known(oid)
            if found is None:
                found = self._here(oid) or self._ask("contents", oid)
                self._keep(oid, found)
            return found

    def size(self, oid: Oid) -> int:
        """Return an object's size in bytes, without loading it.

        Raises:
            KeyError: there is none of this id.
            Unreachable: the repository cannot be read.
        """
        with self._talking:
            found = self._known(oid)
            if found is not None:
                return len(found[1])
            size = self._packs.size(oid) if OID.fullmatch(oid) else None
            return int(self._ask("info", oid)[1]) if size is None else size

    def prefetch(self, oids: Iterable[Oid], limit: int) -> None:
        """Load what is not known yet and is not larger than ``limit`` bytes, many in one exchange.

        What cannot be had is left for :meth:`read` to say so.
        """
        with self._talking:
            unknown = [oid for oid in dict.fromkeys(oids) if OID.fullmatch(oid) and self._known(oid) is None]
            wanted = [oid for oid in unknown if not self._take_near(oid, limit)]
            for at in range(0, len(wanted), TOGETHER):
                chunk = wanted[at : at + TOGETHER]
                sizes = self._exchange_many("info", chunk)
                small = [oid for oid, found in sizes.items() if int(found[1]) <= limit]
                for oid, found in self._exchange_many("contents", small).items():
                    self._keep(oid, found)

    def _exchange_many(self, request: str, oids: list[Oid]) -> dict[Oid, Raw]:
        """Ask for several objects at once; nothing where the reader ended."""
        found: dict[Oid, Raw] = {}
        try:
            self._send(request, oids)
            for oid in oids:
                with contextlib.suppress(KeyError):
                    found[oid] = self._receive(request, oid)
        except BaseException as error:
            self.close()
            if isinstance(error, BrokenPipeError | EOFError):
                return {}
            raise
        return found

    def _known(self, oid: Oid) -> Raw | None:
        found = self.pending.get(oid) or self.lent.get(oid)
        if found is None and oid in self._cache:
            self._cache.move_to_end(oid)
            found = self._cache[oid]
        return found

    def _here(self, oid: Oid) -> Raw | None:
        """Return what can be read from the object store's files without git."""
        if not OID.fullmatch(oid):
            return None
        return self._packs.find(oid) or loose(self.objects, oid)

    def _take_near(self, oid: Oid, limit: int) -> bool:
        """Load an object from the packs that can be read here; say whether it stands in one of them."""
        found = self._packs.find(oid)
        if found is not None and len(found[1]) <= limit:
            self._keep(oid, found)
        return found is not None

    def _ask(self, request: str, oid: Oid) -> Raw:
        if not OID.fullmatch(oid):
            raise KeyError(oid)
        for _ in range(2):  # a reader that somebody ended is started once more
            answer = self._exchange(request, oid)
            if answer is not None:
                return answer
        raise Unreachable(
            f"{self.git.git_dir} cannot be read", rule="hub-gone", remedy="is it there, and a git repository?"
        )

    def _exchange(self, request: str, oid: Oid) -> Raw | None:
        """Ask the reader; None where it has ended. An answer left unread would be taken for the next one's."""
        try:
            return self._answer(request, oid)
        except KeyError:
            raise
        except BaseException as error:
            self.close()
            if isinstance(error, BrokenPipeError | EOFError):
                return None
            raise

    def _answer(self, request: str, oid: Oid) -> Raw:
        self._send(request, [oid])
        return self._receive(request, oid)

    def _send(self, request: str, oids: Iterable[Oid]) -> None:
        if self._reader is None:
            self._reader = self.git.start("cat-file", "--batch-command")
        give = self._reader.stdin
        if give is None:
            raise EOFError
        give.write("".join(f"{request} {oid}\n" for oid in oids).encode())
        give.flush()

    def _receive(self, request: str, oid: Oid) -> Raw:
        take = self._reader.stdout if self._reader else None
        if take is None:
            raise EOFError
        match take.readline().split():
            case [name, kind, size] if name == oid.encode():
                data = take.read(int(size) + 1)[:-1] if request == "contents" else size
                return kind.decode(), data
            case [name, b"missing"] if name == oid.encode():
                raise KeyError(oid)
            case _:
                raise EOFError

    def _keep(self, oid: Oid, found: Raw) -> None:
        if oid in self._cache or len(found[1]) > CACHED // 16:
            return
        self._cache[oid] = found
        self._cached += len(found[1]) + 200
        while self._cached > CACHED:
            _, (_, data) = self._cache.popitem(last=False)
            self._cached -= len(data) + 200

    def close(self) -> None:
        """End the reader; the next read starts another."""
        with self._talking:
            reader, self._reader = self._reader, None
            if reader is not None:
                end(reader)

    # --- writing

    def write(self, oid: Oid, kind: str, data: bytes) -> None:
        """Take an object; it can be read at once and is durable after :meth:`flush`."""
        with self._talking:
            self.pending[oid] = (kind, data)

    def flush(self) -> None:
        """Make what was written durable.

        Raises:
            Unreachable: the disk does not take it (rule ``disk``); the objects stay pending.
        """
        with self._talking:
            if not self.pending:
                return
            try:
                self._write_all()
            except OSError as error:
                if not self.git.git_dir.is_dir():
                    raise no_git(self.git.git_dir) from None
                raise Unreachable(
                    f"objects cannot be written to {self.objects}: {error.strerror}",
                    rule="disk",
                    remedy="free some space or mend the rights; nothing was changed",
                ) from None
            for oid, found in self.pending.items():
                self._keep(oid, found)
            self.pending = {}

    def _write_all(self) -> None:
        for left in reversed(range(TRIES)):
            try:
                if len(self.pending) <= LOOSE:
                    self._write_loose(self.pending)
                else:
                    self._write_pack(self.pending)
            except FileNotFoundError:  # somebody's clean-up took a folder that was still empty
                if not left:
                    raise
            else:
                return

    def _write_loose(self, objects: Mapping[Oid, Raw]) -> None:
        folders = set()
        for oid, (kind, data) in objects.items():
            folder = self.objects / oid[:2]
            folders.add(folder)
            target = folder / oid[2:]
            if target.exists():
                os.utime(target)  # so that nobody prunes it as old
                continue
            self._make_folder(folder)
            whole = b"%s %d\0" % (kind.encode(), len(data)) + data
            _put(target, zlib.compress(whole, 1))
        for folder in sorted(folders):
            sync_folder(folder)

    def _write_pack(self, objects: Mapping[Oid, Raw]) -> None:
        folder = self.objects / "pack"
        self._make_folder(folder)
        made = packed(objects)
        _put(folder / f"{made.name}.pack", made.pack)
        _put(folder / f"{made.name}.idx", made.index)  # the last: git sees a pack by its index
        sync_folder(folder)

    def _make_folder(self, folder: Path) -> None:
        """Make a folder of objects with the rights of the object store, which several users may share."""
        if folder.is_dir():
            return
        folder.mkdir(exist_ok=True)
        with contextlib.suppress(OSError):
            folder.chmod(self.objects.stat().st_mode & 0o7777)
        sync_folder(self.objects)


def _put(target: Path, data: bytes) -> None:
    """Put a file in its place, whole and durable, or not at all."""
    with _temporary(target.parent) as (handle, name):
        effect("object-write", f"{target.name} as {name.name}")
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        os.fchmod(handle, 0o444)
        effect("fsync", target.name)
        os.fsync(handle)
        effect("object-write", target.name)
        name.replace(target)


@contextmanager
def _temporary(folder: Path) -> Iterator[tuple[int, Path]]:
    handle, name = tempfile.mkstemp(prefix="tmp_obj_", dir=folder)
    path = Path(name)
    try:
        yield handle, path
    finally:
        os.close(handle)
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    effect("fsync", folder.name)
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a child that was talked to over pipes."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    process.terminate()
    process.wait()
