"""Walking history: the first-parent line, what lies between commits, and who descends from whom.

Rules: what is near is walked here through cached commits, what is far is asked of git; both give
the same answer. History is never simplified: a merge that differs from any parent is listed, which
git's own path limiting does not promise when parents are excluded.

Example: ``Walker(git, commits, touches, flush).line(tip, until=seen)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice

from gitbus.history import Commit, Oid
from gitbus.hub.run import Git, failed

NEAR = 250
"""Up to so many commits are walked here before git is asked."""


class Walker:
    """Walks the history of one repository.

    Args:
        git: the repository.
        commit: returns a commit by id; raises ``KeyError`` where there is none.
        touches: says whether a commit differs at or below some paths from one of its parents, or
            from its first parent alone.
        flush: called before git has to see what was written.
    """

    def __init__(
        self,
        git: Git,
        commit: Callable[[Oid], Commit],
        touches: Callable[[Oid, Collection[str], bool], bool],
        flush: Callable[[], None],
    ) -> None:
        self._git = git
        self._commit = commit
        self._touches = touches
        self._flush = flush

    def line(self, tip: Oid, until: Oid | None, touching: Collection[str]) -> list[Oid]:
        """Return the first-parent chain from ``tip``, newest first, ``until`` left out."""
        near = list(islice(self._chain(tip, until), NEAR + 1))
        if len(near) <= NEAR:
            return [oid for oid in near if not touching or self._touches(oid, touching, True)]
        base = self._base(tip, until)
        return self._rev_list([tip], [base] if base else [], touching, "--first-parent")

    def _chain(self, tip: Oid, until: Oid | None) -> Iterator[Oid]:
        here: Oid | None = tip
        while here is not None and here != until:
            yield here
            here = next(iter(self._commit(here).parents), None)

    def _base(self, tip: Oid, until: Oid | None) -> Oid | None:
        """Return ``until`` where it is on the first-parent chain of ``tip``; an absent one is not."""
        if until is None:
            return None
        try:
            self._commit(until)
        except KeyError:
            return None
        self._flush()
        chain = self._run("--first-parent", "--parents", tip, f"^{until}", names=(tip, until))
        return until if chain and chain[-1].split()[1:2] == [until] else None

    def between(
        self, tips: Collection[Oid], without: Collection[Oid], touching: Collection[str]
    ) -> Sequence[Oid]:
        """Return the commits reachable from ``tips`` and not from ``without``, parents before children."""
        near = self._near(tips, without)
        if near is not None:
            return [oid for oid in near if not touching or self._touches(oid, touching, False)]
        if not touching:
            return self._rev_list(tips, without, (), "--topo-order", "--reverse")
        if not without:
            return self._rev_list(tips, (), touching, "--topo-order", "--reverse", "--full-history")
        return self._touching(tips, without, touching)

    def _touching(
        self, tips: Collection[Oid], without: Collection[Oid], touching: Collection[str]
    ) -> list[Oid]:
        """Take git's answer for all but merges with an excluded parent, which git judges by the others."""
        picked = set(self._rev_list(tips, without, touching, "--full-history"))
        listed = [
            one.split() for one in self._rev_list(tips, without, (), "--topo-order", "--reverse", "--parents")
        ]
        inside = {oid for oid, *_ in listed}
        found = []
        for oid, *parents in listed:
            edge = len(parents) > 1 and not inside.issuperset(parents)
            if oid in picked or (edge and self._touches(oid, touching, False)):
                found.append(oid)
        return found

    def _near(self, tips: Collection[Oid], without: Collection[Oid]) -> list[Oid] | None:
        """Walk a chain without merges down to the line of the one excluded commit; None where it is not that.

        Where the chain leaves the line at ``fork``, a commit of it is excluded if and only if it is
        reached from the excluded commit by a way that meets the line above ``fork`` alone.
        """
        if len(set(tips)) != 1 or len(set(without)) != 1:
            return None
        tip, base = next(iter(tips)), next(iter(without))
        line = {oid: place for place, oid in enumerate(islice(self._chain(base, None), NEAR))}
        chain: list[Oid] = []
        here = tip
        while here not in line:
            parents = self._commit(here).parents
            if len(parents) != 1 or len(chain) >= NEAR:
                return None
            chain.append(here)
            here = parents[0]
        excluded = self._above(base, line, line[here]) if chain else frozenset[Oid]()
        if excluded is None:
            return None
        return [oid for oid in reversed(chain) if oid not in excluded]

    def _above(self, base: Oid, line: dict[Oid, int], fork: int) -> frozenset[Oid] | None:
        """Return what ``base`` reaches without stepping on the line at ``fork`` or below; None where that is far."""
        seen: set[Oid] = set()
        stack = [base]
        while stack:
            here = stack.pop()
            if here in seen or line.get(here, -1) >= fork:
                continue
            if len(seen) >= 2 * NEAR:
                return None
            seen.add(here)
            stack.extend(self._commit(here).parents)
        return frozenset(seen)

    def is_ancestor(self, old: Oid, new: Oid) -> bool:
        """Say whether ``old`` is reachable from ``new``."""
        self._commit(old)
        if any(old == oid for oid in islice(self._chain(new, None), NEAR // 4)):
            return True
        self._flush()
        ran = self._git.run("merge-base", "--is-ancestor", old, new)
        if ran.code not in (0, 1):
            raise failed("git merge-base failed", ran, self._git.git_dir, rule="git-failed")
        return ran.code == 0

    def is_on_line(self, old: Oid, new: Oid) -> bool:
        """Say whether ``old`` is on the first-parent chain of ``new``."""
        if any(old == oid for oid in islice(self._chain(new, None), NEAR)):
            return True
        return self._base(new, old) is not None

    def _rev_list(
        self, tips: Collection[Oid], without: Collection[Oid], touching: Collection[str], *options: str
    ) -> list[str]:
        for oid in (*tips, *without):
            self._commit(oid)  # an absent one is a KeyError, not git's failure
        if not tips:
            return []
        self._flush()
        paths = ["--", *sorted(path or "." for path in touching)] if touching else []
        return self._run(*options, "--stdin", *paths, names=(*tips, *(f"^{one}" for one in without)))

    def _run(self, *arguments: str, names: Collection[str]) -> list[str]:
        given = "".join(f"{name}\n" for name in names).encode() if "--stdin" in arguments else b""
        return self._git.text("rev-list", *arguments, given=given).splitlines()
