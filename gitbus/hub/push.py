"""The hub as any git host: fetch, and push with every old value named.

Objects are written into the clone's own store. What is fetched stands under ``refs/gitbus/hub/``
there, so that it is neither lost nor in anybody's way; the clone's working tree, index, branches,
configuration, ``HEAD`` and ``FETCH_HEAD`` are never touched.

Example: ``PushHub(Git(clone), "origin", "refs/heads/main")``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence

from gitbus.effects import effect
from gitbus.errors import Refused, Unreachable
from gitbus.history import Oid
from gitbus.hub.base import Moves, RefMove
from gitbus.hub.direct import GITBUS, refuse_rewrite
from gitbus.hub.refs import RefFiles
from gitbus.hub.run import Git, Ran, said
from gitbus.hub.store import GitStore

KEPT = "refs/gitbus/hub/"
TRIES = 8
POLL = 2.0


class PushHub:
    """A hub that is reached by fetch and push.

    Args:
        git: the clone.
        remote: the remote's name or URL.
        main: the full name of the bus's branch.
    """

    def __init__(self, git: Git, remote: str, main: str) -> None:
        self.git = git
        self.remote = remote
        self.main = main
        self.store = GitStore(git, git)
        self._kept = RefFiles(git)

    def look(self) -> Mapping[str, Oid]:
        """Fetch, and return the refs as they are on the hub now."""
        if (self.git.git_dir / "shallow").exists():
            raise Refused(
                "this clone is shallow: it does not hold the history that proves anything",
                rule="shallow",
                remedy="git fetch --unshallow",
            )
        self._fetch()
        refs = {
            "refs/heads/" + ref.removeprefix(KEPT): oid
            for ref, oid in self._kept.below(KEPT.rstrip("/")).items()
        }
        if self.main not in refs:
            raise Unreachable(f"the hub has no branch {self.main}", rule="no-branch")
        return refs

    def _fetch(self) -> None:
        main = self.main.removeprefix("refs/heads/")
        specs = [f"+{self.main}:{KEPT}{main}", f"+{GITBUS}*:{KEPT}gitbus/*"]
        for attempt in range(TRIES):
            ran = self.git.run(
                "fetch", "--prune", "--no-tags", "--no-write-fetch-head", "--quiet", self.remote, *specs
            )
            if ran.code == 0:
                return
            if "refs/gitbus/hub" not in ran.err:  # nobody else fetches into this clone just now
                break
            time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311 - jitter
        raise _unreachable(self.remote, ran)

    def move(self, moves: Sequence[RefMove]) -> Moves:
        """Flush, then push, each ref by compare-and-swap; the bus's branch is judged alone."""
        self.store.flush()
        for move in moves:
            refuse_rewrite(self.store, move)
        ran = self._push(moves)
        if ran.code == 0:
            return Moves(frozenset(one.ref for one in moves), frozenset())
        return self._read_back(moves, ran)

    def _push(self, moves: Sequence[RefMove]) -> Ran:
        effect("push", " ".join(one.ref for one in moves))
        leases = [f"--force-with-lease={one.ref}:{one.old or ''}" for one in moves]
        specs = [f"{one.new or ''}:{one.ref}" for one in moves]
        return self.git.run("push", "--porcelain", "--no-verify", "--quiet", *leases, self.remote, *specs)

    def _read_back(self, moves: Sequence[RefMove], ran: Ran) -> Moves:
        """Find out by the refs themselves what became of a push that was not plainly taken."""
        refs = self.look()
        done = frozenset(one.ref for one in moves if refs.get(one.ref) == one.new)
        lost = frozenset(one.ref for one in moves if one.ref not in done and refs.get(one.ref) != one.old)
        held = [one for one in moves if one.ref not in done | lost]
        if any(one.ref == self.main for one in held) or (held and not done and not lost):
            raise Unreachable(
                f"the hub does not take {held[0].ref}: {said(ran.err)}",
                rule="push-refused",
                remedy="a hook, a rule or a missing right refuses it; `gitbus doctor` says more",
            )
        return Moves(done, lost | frozenset(one.ref for one in held))

    def wait(self, seconds: float, seen: Mapping[str, Oid]) -> None:  # noqa: ARG002 - a host has to be asked
        """Wait; a host has to be asked, and is asked by the next look."""
        time.sleep(min(seconds, POLL))

    def close(self) -> None:
        """End what child processes there are."""
        self.store.close()


def _unreachable(remote: str, ran: Ran) -> Unreachable:
    return Unreachable(
        f"the hub cannot be reached ({remote}): {said(ran.err)}",
        rule="hub-unreachable",
        remedy="check the network, the remote's URL and your rights; nothing was lost",
    )
