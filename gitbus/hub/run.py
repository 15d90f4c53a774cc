"""The one door to the git program: its environment is cleaned here, once.

Rules: nothing in the environment or in a clone's configuration may decide which repository is
read, put one object in another's place, or run a program, except what the user needs to reach his
host and to sign. git's prose is never read, only shown: refs, exit codes and porcelain are.

Example: ``Git(folder).text("rev-parse", "HEAD")``.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gitbus.errors import Unreachable

_KEPT = (
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_ASKPASS",
    "GIT_TERMINAL_PROMPT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
)
_KEPT_PREFIXES = ("GIT_SSL_", "GIT_TRACE", "GIT_CURL_", "GIT_PROXY_", "GIT_HTTP_")

_SET = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ADVICE": "0",
}

NEUTRAL = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": "true",  # the program that names no ref
    "core.useReplaceRefs": "false",
    "core.fsync": "committed",  # refs as well: a lease that a power cut takes back would be sent twice
    "core.filesRefLockTimeout": "500",
    "core.packedRefsTimeout": "2000",
    "core.logAllRefUpdates": "false",
    "core.commitGraph": "true",
    "protocol.ext.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "fetch.writeCommitGraph": "false",
    "push.followTags": "false",
    "push.gpgSign": "false",
    "push.recurseSubmodules": "no",
    "i18n.commitEncoding": "UTF-8",
    "advice.graftFileDeprecated": "false",
    "advice.fetchShowForcedUpdates": "false",
}
"""Configuration that every command of ours runs under."""

NETWORK_SECONDS = 600.0
"""After so long a host that does not answer counts as gone."""


def environment(**more: str) -> dict[str, str]:
    """Return the environment for git and its kin: the user's, without what could redirect them."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    kept.setdefault("GIT_TERMINAL_PROMPT", "0")
    return kept | _SET | more


def settings(more: Mapping[str, str] | None = None) -> list[str]:
    """Return the options that set :data:`NEUTRAL` and some more configuration for one command."""
    return [part for key, value in {**NEUTRAL, **(more or {})}.items() for part in ("-c", f"{key}={value}")]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program answered."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """What it printed, without white space around it."""
        return self.out.decode("utf-8", "replace").strip()


@dataclass(frozen=True)
class Git:
    """git in one repository.

    Args:
        git_dir: the repository's own directory (``.git``, or the bare repository).
        folder: where commands run, which is what a relative URL of a remote starts from; the
            repository's own directory unless given.
    """

    git_dir: Path
    folder: Path | None = None

    def command(self, *arguments: str, config: Mapping[str, str] | None = None) -> list[str]:
        """Return the whole command line."""
        return ["git", f"--git-dir={self.git_dir}", "--literal-pathspecs", *settings(config), *arguments]

    def run(
        self,
        *arguments: str,
        given: bytes = b"",
        env: Mapping[str, str] | None = None,
        config: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Ran:
        """Run a command to its end; never raises for its exit code.

        Args:
            arguments: the command and what follows it.
            given: its standard input.
            env: variables added to the environment.
            config: further configuration for this command.
            seconds: after so long it is ended, with the code -9; None waits for ever.

        Raises:
            Unreachable: there is no git on this machine, or the repository is gone.
        """
        command = self.command(*arguments, config=config)
        return run(command, given=given, env=environment(**(env or {})), cwd=self._where, seconds=seconds)

    def text(self, *arguments: str, given: bytes = b"", config: Mapping[str, str] | None = None) -> str:
        """Run a command that has to work and return what it printed, stripped.

        Raises:
            Unreachable: it failed; the message holds the end of what git said.
        """
        ran = self.run(*arguments, given=given, config=config)
        if ran.code != 0:
            raise failed(f"git {arguments[0]} failed", ran, self.git_dir, rule="git-failed")
        return ran.text

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command that is talked to over pipes.

        Raises:
            Unreachable: there is no git on this machine, or the repository is gone.
        """
        try:
            return subprocess.Popen(
                self.command(*arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
                cwd=self._where,
            )
        except (FileNotFoundError, NotADirectoryError):
            raise no_git(self._where) from None

    def config(self, key: str, *, local: bool = False) -> str | None:
        """Return a configured value, the last one; None where there is none.

        Args:
            key: its name.
            local: look only at the repository's own configuration.
        """
        ran = self.run("config", *(("--local", "--includes") if local else ()), "--get", key)
        return ran.text if ran.code == 0 else None

    @property
    def _where(self) -> Path:
        return self.folder or self.git_dir


def run(
    command: list[str],
    *,
    given: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    seconds: float | None = None,
) -> Ran:
    """Run a program to its end in a clean environment; never raises for its exit code.

    Raises:
        Unreachable: the program or the folder is not there.
    """
    try:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            check=False,
            env=dict(env) if env is not None else environment(),
            cwd=cwd,
            timeout=seconds,
        )
    except (FileNotFoundError, NotADirectoryError):
        raise no_git(cwd) from None
    except subprocess.TimeoutExpired:
        return Ran(-9, b"", f"it did not answer within {seconds:.0f} seconds")
    return Ran(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def no_git(folder: Path | None) -> Unreachable:
    """Return the error for a program or folder that is not there."""
    if folder is not None and not folder.is_dir():
        return Unreachable(
            f"{folder} is gone", rule="hub-gone", remedy="bring it back, or set the remote's URL"
        )
    return Unreachable("git is not on this machine", rule="no-git", remedy="install git 2.38 or newer")


def failed(what: str, ran: Ran, git_dir: Path, *, rule: str, remedy: str | None = None) -> Unreachable:
    """Return the error for a command that failed, told apart from a full disk."""
    if disk_full(git_dir):
        remedy = "free some space; nothing was lost"
        return Unreachable(f"{what}: the disk of {git_dir} is full", rule="disk", remedy=remedy)
    return Unreachable(f"{what}: {said(ran.err)}", rule=rule, remedy=remedy)


def disk_full(folder: Path) -> bool:
    """Say whether there is no space left where a folder is."""
    try:
        left = os.statvfs(folder)
    except OSError:
        return False
    return left.f_bavail == 0 or (left.f_files > 0 and left.f_favail == 0)


_BLAME = ("error:", "fatal:", "ERROR:")


def said(text: str) -> str:
    """Return what a program said for people: one line, no controls, and what the host said if it spoke.

    The host's words count from its first complaint on, git's own up to theirs: advice follows it.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("hint:")]
    remote = [line.removeprefix("remote:").strip() for line in lines if line.startswith("remote:")]
    spoken = [line for line in remote if line]
    if spoken:
        chosen = spoken[_first_blame(spoken) or 0 :][:4]
    else:
        blame = _first_blame(lines)
        chosen = lines[-1:] if blame is None else lines[: blame + 1][-4:]
    return "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for char in " / ".join(chosen or ["it said nothing"])
    )


def _first_blame(lines: list[str]) -> int | None:
    return next((number for number, line in enumerate(lines) if line.startswith(_BLAME)), None)
