"""Running a command where it cannot reach what the worker's user can: as another user, or in a sandbox.

Rules: an isolation says how a command is started and never weakens by itself; where it cannot be
had, it is refused with what would help. The sandbox (bubblewrap) shows the system read-only, an
empty home with the program's own folders in it, an empty /tmp and /run (so no agent sockets, no
session bus), and its own processes only. The network stays.

Example: ``CommandRunner(("claude",), adapter=…, isolation=sandbox())``.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gitbus.errors import Refused
from gitbus.runner.process import Start
from gitbus.runner.room import Guest

_BIN = frozenset({"bin", ".bin", "sbin"})
_HOPS = 10  # links from a name to its program, and interpreters of scripts
_READ_ENV = 'IFS= read -r gitbus_env && eval "$gitbus_env" && unset gitbus_env && umask 022 && exec "$@"'
_EMPTY = "chmod -R u+rwX . ; find . -mindepth 1 -delete"


class Isolation(Protocol):
    """A way to start a command."""

    @property
    def guest(self) -> Guest | None:
        """Return the user that the command's folder is for, where it is another."""

    def start(
        self,
        argv: Sequence[str],
        stdin: bytes,
        env: Mapping[str, str],
        folder: Path,
        cwd: Path,
        state: Sequence[str],
    ) -> Start:
        """Return what to start.

        Args:
            argv: the command.
            stdin: what it is given on standard input.
            env: its environment.
            folder: the attempt's own folder.
            cwd: where it runs.
            state: paths below its home folder that it may change.
        """


@dataclass(frozen=True)
class Direct:
    """As the worker's own user, with all that this user may do."""

    guest: Guest | None = None

    def start(
        self,
        argv: Sequence[str],
        stdin: bytes,
        env: Mapping[str, str],
        folder: Path,  # noqa: ARG002
        cwd: Path,
        state: Sequence[str],  # noqa: ARG002
    ) -> Start:
        """Return what to start."""
        return Start(argv, stdin, env, cwd)


DIRECT = Direct()


# --- another user


@dataclass(frozen=True)
class AsUser:
    """As another user of this machine: set by root, or through sudo without a password."""

    name: str
    home: str
    guest: Guest

    def start(
        self,
        argv: Sequence[str],
        stdin: bytes,
        env: Mapping[str, str],
        folder: Path,  # noqa: ARG002
        cwd: Path,
        state: Sequence[str],  # noqa: ARG002
    ) -> Start:
        """Return what to start; through sudo the environment goes in on standard input, out of sight."""
        own = {**env, "HOME": self.home, "USER": self.name}
        if self.guest.owns:
            ids = (f"--reuid={self.guest.uid}", f"--regid={self.guest.gid}")
            return Start(("setpriv", *ids, "--init-groups", "--no-new-privs", "--", *argv), stdin, own, cwd)
        words = (*_sudo(self.name), "sh", "-c", _READ_ENV, "sh", *argv)
        return Start(words, _exports(own) + stdin, {"PATH": env.get("PATH", os.defpath)}, cwd, self.name)


def _sudo(name: str) -> tuple[str, ...]:
    return ("sudo", "-n", "-u", name, "--")


def _exports(env: Mapping[str, str]) -> bytes:
    """Return a line of shell that exports the environment; a value of several lines is left out."""
    words = [
        f"{name}={shlex.quote(value)}"
        for name, value in env.items()
        if name.isidentifier() and "\n" not in value
    ]
    return f"export {' '.join(words)}\n".encode("utf-8", "surrogateescape")


def as_user(name: str, *, root: bool | None = None) -> AsUser:
    """Return the isolation that runs a command as another user.

    Args:
        name: the user.
        root: whether the worker is root; asked of the system where None.

    Raises:
        Refused: there is no such user, it is the worker's own, or the worker may not become it.
    """
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise Refused(
            f"there is no user {name} on this machine",
            rule="no-such-user",
            remedy=f"sudo useradd --system --create-home {name}",
        ) from None
    if user.pw_uid in (os.getuid(), 0):
        raise Refused(
            f"{name} is no other, lesser user",
            rule="same-user",
            remedy="name a user that holds no keys and no tokens",
        )
    is_root = os.geteuid() == 0 if root is None else root
    if is_root and shutil.which("setpriv"):
        return AsUser(name, user.pw_dir, Guest(user.pw_uid, user.pw_gid, owns=True))
    _may_become(name)
    remove = (*_sudo(name), "sh", "-c", _EMPTY)
    return AsUser(name, user.pw_dir, Guest(user.pw_uid, user.pw_gid, owns=False, remove=remove))


def _may_become(name: str) -> None:
    remedy = f"let sudo allow it: `{pwd.getpwuid(os.getuid()).pw_name} ALL=({name}) NOPASSWD: ALL` (visudo)"
    if not shutil.which("sudo"):
        raise Refused("sudo is not here", rule="no-sudo", remedy="install sudo, or use --sandbox")
    asked = subprocess.run((*_sudo(name), "true"), stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if asked.returncode != 0:
        raise Refused(
            f"sudo does not let this user become {name} without a password", rule="no-sudo", remedy=remedy
        )


# --- a sandbox


@dataclass(frozen=True)
class Sandbox:
    """Inside bubblewrap; ``read`` and ``write`` are more paths that the command may see or change."""

    program: str
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    guest: Guest | None = None

    def start(
        self,
        argv: Sequence[str],
        stdin: bytes,
        env: Mapping[str, str],
        folder: Path,
        cwd: Path,
        state: Sequence[str],
    ) -> Start:
        """Return what to start."""
        home = Path(env.get("HOME") or "/nonexistent")
        own = [home / name for name in state]
        outside = [] if cwd.is_relative_to(folder) else [cwd]
        words = [
            *(
                self.program,
                "--die-with-parent",
                "--unshare-pid",
                "--unshare-ipc",
                "--unshare-uts",
                "--new-session",
            ),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *_each("--tmpfs", _covered(home)),
            *_each("--ro-bind-try", [*_needed(argv, env, home, cwd), *_resolver(), *self.read], twice=True),
            *_each("--bind-try", [*own, *outside, *self.write, folder], twice=True),
            *("--chdir", str(cwd), "--", *argv),
        ]
        return Start(words, stdin, {**env, "TMPDIR": "/tmp"}, Path("/"))  # noqa: S108


def _each(option: str, paths: Sequence[Path], *, twice: bool = False) -> Iterator[str]:
    for path in paths:
        yield from (option, str(path), str(path)) if twice else (option, str(path))


def _covered(home: Path) -> list[Path]:
    """Return the folders that are shown empty."""
    places = [Path("/tmp"), Path("/var/tmp"), Path("/run"), Path("/home"), Path("/root"), home]  # noqa: S108
    found = [place for place in places if place.is_dir() and not place.is_symlink() and place != Path("/")]
    return list(dict.fromkeys(found))


def _resolver() -> list[Path]:
    """Return where the names of hosts are looked up, as that is often a link into /run."""
    real = Path("/etc/resolv.conf").resolve()
    return [real] if real.is_relative_to("/run") else []


def _needed(argv: Sequence[str], env: Mapping[str, str], home: Path, cwd: Path) -> list[Path]:
    """Return the folders in which the program stands, and the files that its words name."""
    program = shutil.which(argv[0], path=env.get("PATH"))
    found = [_prefix(hop, home) for hop in _hops(Path(program), env)] if program else []
    files = [cwd / word for word in argv[1:] if 0 < len(word) < 1024 and "\0" not in word]
    return [*dict.fromkeys(found), *(path for path in files if path.is_file())]


def _hops(program: Path, env: Mapping[str, str]) -> Iterator[Path]:
    """Yield a program, what its links lead to, and the interpreters that run it."""
    for _ in range(_HOPS):
        yield program
        if program.is_symlink():
            program = Path(os.path.normpath(program.parent / program.readlink()))
            continue
        interpreter = _interpreter(program)
        found = shutil.which(interpreter, path=env.get("PATH")) if interpreter else None
        if found is None:
            return
        program = Path(found)


def _interpreter(program: Path) -> str | None:
    """Return what a script's first line names, through ``env`` or not."""
    try:
        with program.open("rb") as file:
            first = file.readline(256)
    except OSError:
        return None
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0] if words else None


def _prefix(program: Path, home: Path) -> Path:
    """Return the folder that a program was installed into, never the whole home or what is above it."""
    folder = program.parent.parent if program.parent.name in _BIN else program.parent
    for place in (folder, program.parent):
        if not home.is_relative_to(place):
            return place
    return program


def sandbox(read: Sequence[Path] = (), write: Sequence[Path] = ()) -> Sandbox:
    """Return the isolation that runs a command in bubblewrap.

    Raises:
        Refused: bubblewrap is not here, or may not do its work.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise Refused(
            "bubblewrap (bwrap) is not here",
            rule="no-sandbox",
            remedy="install bubblewrap, or use --user NAME",
        )
    words = (program, "--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "true")
    asked = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if asked.returncode != 0:
        raise Refused(
            "bubblewrap cannot make a sandbox on this machine",
            rule="no-sandbox",
            remedy="allow unprivileged user namespaces (in a container often off), or use --user NAME",
        )
    return Sandbox(program, tuple(read), tuple(write))
