"""The hub as any git host: fetch, and push with every old value named.

Objects are written into the clone's own store. What is fetched stands under ``refs/gitbus/hub/``
there, so that no clean-up takes it and it is in nobody's way; the clone's working tree, index,
branches, remote-tracking branches, configuration, ``HEAD`` and ``FETCH_HEAD`` are never touched.

A push is judged by porcelain's flags and, where those leave a doubt, by reading the refs again.
``main`` is judged alone: other refs ride in the same push, so one of them may have been moved
although ``main`` was lost.

Example: ``PushHub(Git(clone), "origin", "refs/heads/main")``.
"""

from __future__ import annotations

import fcntl
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from gitbus.effects import effect
from gitbus.errors import Unreachable
from gitbus.history import Oid
from gitbus.hub.base import Moves, RefMove
from gitbus.hub.direct import locked, refuse_shallow
from gitbus.hub.moving import GITBUS, HEADS, no_branch, ordered
from gitbus.hub.refs import RefFiles
from gitbus.hub.run import NETWORK_SECONDS, Git, Ran, failed, said
from gitbus.hub.store import GitStore

KEPT = "refs/gitbus/hub"
"""Below it stands what was fetched, by the name that it has below ``refs/heads/``."""

POLL = 0.05
"""Seconds between two looks at files on this machine while waiting."""

TRIES = 3
"""So often a push is tried that left its ref where it was and was not refused in so many words."""

_REPORT = re.compile(rb"^([ +*=!-])\t[^\t\n]*:(\S+)\t(?:\[([a-z ]+)\])?(?: \(([^\n]*)\)$)?", re.MULTILINE)
_BEATEN = "rejected"
"""Porcelain's word for a ref that git itself did not push: the hub told of another value than the one named.

What is read back may be older than that, where a host answers from several machines."""
_REJECTED = "remote rejected"
_SURELY_NOT = frozenset([_BEATEN, _REJECTED])
"""Porcelain's words for a ref that this push did not move; any other failure may have moved it."""
_FOR_GOOD = re.compile(
    r"declined|denied|forbidden|prohibited|not allowed|protected|violat|read.only|hidden ref|error: 40[13]",
    re.IGNORECASE,
)
"""What a host says that will not take a push however often it comes: a hook, a rule or a missing right.

Only how often it is tried hangs on this, never what became of it."""

_FETCH = (
    "--prune",
    "--no-prune-tags",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--no-show-forced-updates",
    "--refmap=",  # else the user's remote-tracking branches would move as well
    "--quiet",
)
_REMEDY = "check the network, the remote's URL and your rights; nothing was lost"
_FOR_PUSHING = frozenset(["url", "pushurl", "proxy", "proxyauthmethod", "receivepack", "vcs"])


class PushHub:
    """A hub that is reached by fetch and push.

    Args:
        git: the clone.
        remote: the remote's name.
        main: the full name of the bus's branch.
        path: the hub's repository, where it is one on this machine: it is watched while waiting.
    """

    def __init__(self, git: Git, remote: str, main: str, path: Path | None = None) -> None:
        self.git = git
        self.remote = remote
        self.main = main
        self.store = GitStore(git, git)
        self._kept = RefFiles(git)
        self._theirs = RefFiles(Git(path)) if path else None
        self._pushing: dict[str, str] = {}
        self._woken = False

    # --- reading

    def look(self) -> Mapping[str, Oid]:
        """Fetch, and return the refs as they are on the hub now."""
        refuse_shallow(self.git)
        with self._alone():
            self._fetch()
            kept = self._kept.below(KEPT)
        refs = {HEADS + ref.removeprefix(KEPT + "/"): oid for ref, oid in kept.items()}
        if self.main not in refs:
            raise no_branch(self.main)
        return {ref: oid for ref, oid in refs.items() if ref == self.main or ref.startswith(GITBUS + "/")}

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one actor of this clone fetch at a time: their refs are the same."""
        folder = self.git.git_dir / "gitbus"
        folder.mkdir(mode=0o700, exist_ok=True)
        with (folder / "fetch.lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _fetch(self) -> None:
        branch = self.main.removeprefix(HEADS)
        specs = {f"+{self.main}:{KEPT}/{branch}", f"+{GITBUS}/*:{KEPT}/gitbus/*"}
        if self.main.startswith(GITBUS + "/"):
            specs.remove(f"+{self.main}:{KEPT}/{branch}")
        effect("connect", self.remote)
        effect("fetch", self.remote)
        ran = self.git.run("fetch", *_FETCH, self.remote, *sorted(specs), seconds=NETWORK_SECONDS)
        if ran.code != 0:
            raise self._why_not(ran)

    def _why_not(self, ran: Ran) -> Exception:
        """Tell a hub without the bus's branch, and a lock in the clone, from a hub that is not reached."""
        lock = next((self.git.git_dir / KEPT).rglob("*.lock"), None)
        if lock:
            return locked(f"what is fetched from {self.remote}", lock)
        listed = self.git.run("ls-remote", "--exit-code", self.remote, self.main, seconds=NETWORK_SECONDS)
        if listed.code == 2:
            return no_branch(self.main)
        return failed(
            "the hub cannot be reached", ran, self.git.git_dir, rule="hub-unreachable", remedy=_REMEDY
        )

    # --- moving

    def move(self, moves: Sequence[RefMove]) -> Moves:
        """Flush, then push, each ref by compare-and-swap; the bus's branch is judged alone."""
        todo = ordered(self.store, moves, self.main)
        self.store.flush()
        done: set[str] = set()
        lost: set[str] = set()
        unsure: set[str] = set()
        refused: dict[str, Ran] = {}
        left = todo
        for attempt in range(TRIES):
            if not left:
                break
            time.sleep(random.uniform(0, 0.2 * attempt))  # noqa: S311 - jitter
            ran = self._push(left)
            self._judge(left, ran, done, lost, unsure)
            left = [move for move in left if move.ref not in done | lost]
            refused |= {move.ref: ran for move in left if attempt == TRIES - 1 or _is_for_good(move, ran)}
            left = [move for move in left if move.ref not in refused]
        first = next((move for move in todo if move.ref in refused), None)
        if first is not None and (not done or first.ref == self.main):
            raise self._refused(first, refused[first.ref])
        return Moves(frozenset(done), frozenset(move.ref for move in todo) - done)

    def _push(self, moves: Sequence[RefMove]) -> Ran:
        effect("push", " ".join(move.ref for move in moves))
        leases = [f"--force-with-lease={move.ref}:{move.old or ''}" for move in moves]
        specs = [f"{move.new or ''}:{move.ref}" for move in moves]
        name = f"gitbus-{self.remote}"
        return self.git.run(
            "push",
            "--porcelain",
            "--no-verify",
            "--no-force-if-includes",
            *leases,
            name,
            *specs,
            config=self._for_pushing(name),
            seconds=NETWORK_SECONDS,
        )

    def _for_pushing(self, name: str) -> dict[str, str]:
        """Return the remote under another name and without what moves remote-tracking branches."""
        if not self._pushing:
            prefix = f"remote.{self.remote}."
            ran = self.git.run("config", "-z", "--get-regexp", f"^{re.escape(prefix)}")
            for line in ran.out.decode("utf-8", "surrogateescape").split("\0"):
                key, _, value = line.partition("\n")
                if key.removeprefix(prefix) in _FOR_PUSHING:
                    self._pushing.setdefault(f"remote.{name}.{key.removeprefix(prefix)}", value)
        return self._pushing

    def _judge(
        self, moves: Sequence[RefMove], ran: Ran, done: set[str], lost: set[str], unsure: set[str]
    ) -> None:
        """Sort moves into done and lost; a move in neither left its ref where it was.

        A ref that is "up to date" stood there before this push, and one that was rejected was not moved
        by it: where it has the new value, somebody else put the same commit there. Unless it is
        ``unsure``: a push whose answer was lost, this one or one before it, may have moved it.
        """
        flags = _reported(ran)
        doubtful = []
        for move in moves:
            flag, why, _ = flags.get(move.ref, _SILENT)
            if flag == "=":
                mine = move.ref in unsure or move.old == move.new
                (done if mine else lost).add(move.ref)
            elif flag in " +*-":
                done.add(move.ref)
            else:
                doubtful.append(move)
                unsure |= {move.ref} if why not in _SURELY_NOT else set()
        refs = self._read_back() if doubtful else {}
        for move in doubtful:
            now, why = refs.get(move.ref), flags.get(move.ref, _SILENT)[1]
            if now == move.new:
                (done if now is None or move.ref in unsure else lost).add(move.ref)
            elif now != move.old or why == _BEATEN:
                lost.add(move.ref)

    def _read_back(self) -> Mapping[str, Oid]:
        """Read the refs again, since only they say what became of a push without a plain answer."""
        for _ in range(TRIES - 1):
            try:
                return self.look()
            except Unreachable:
                time.sleep(random.uniform(0, 0.5))  # noqa: S311 - jitter
        return self.look()

    def _refused(self, move: RefMove, ran: Ran) -> Unreachable:
        words = _reported(ran).get(move.ref, _SILENT)[2]
        return failed(
            f"the hub does not take {move.ref}" + (f" ({said(words)})" if words else ""),
            ran,
            self.git.git_dir,
            rule="push-refused",
            remedy="a hook, a rule, a lock or a missing right is in the way: gitbus doctor",
        )

    # --- waiting

    def wait(self, seconds: float, seen: Mapping[str, Oid]) -> None:
        """Return after ``seconds``, or sooner when the refs are seen to change on this machine.

        A host has to be asked, and is, by the next look; but a hub on this machine is watched, and
        so is what another actor fetches into the same clone.
        """
        end = time.monotonic() + seconds
        before = self._fingerprint()
        if self._changed(seen):
            return
        while not self._woken:
            left = end - time.monotonic()
            if left <= 0 or self._fingerprint() != before:
                return
            time.sleep(min(POLL, left))
        self._woken = False

    def _fingerprint(self) -> object:
        theirs = self._theirs.fingerprint(self.main, GITBUS) if self._theirs else None
        return theirs, self._kept.fingerprint(KEPT)

    def _changed(self, seen: Mapping[str, Oid]) -> bool:
        return self._theirs is not None and self._theirs.below(self.main, GITBUS) != dict(seen)

    def wake(self) -> None:
        """End the wait that is going on, or the next one; for signal handlers and other threads."""
        self._woken = True

    def close(self) -> None:
        """End what child processes there are."""
        self.store.close()


_SILENT = ("!", "", "")


def _reported(ran: Ran) -> dict[str, tuple[str, str, str]]:
    """Return what porcelain tells of each ref: its flag, what happened, and the host's reason."""
    return {
        ref.decode(): (flag.decode(), what.decode(), why.decode("utf-8", "replace"))
        for flag, ref, what, why in _REPORT.findall(ran.out)
    }


def _is_for_good(move: RefMove, ran: Ran) -> bool:
    """Say whether a host that left a ref where it was would leave it there the next time too."""
    reported = _reported(ran)
    if not reported:
        return _FOR_GOOD.search(ran.err) is not None
    _, what, why = reported.get(move.ref, _SILENT)
    return what == _REJECTED and _FOR_GOOD.search(why) is not None
