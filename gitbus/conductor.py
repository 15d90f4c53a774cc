"""The conductor: looks at the hub, lets the flow decide, and writes what it decided.

A tick is one look and at most one move of the bus's branch. It is level-triggered: it looks at what
is, never at an event, so that any number of conductors may run and any of them may die.

Example::

    conductor = Conductor(hub, root)
    while conductor.tick():
        pass
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from gitbus.board import Board, GoalBoard
from gitbus.change import Change
from gitbus.clock import utc_now
from gitbus.errors import HubMoved, Refused, Unreachable
from gitbus.flow import people
from gitbus.flow.absorb import absorb
from gitbus.flow.approve import branches
from gitbus.flow.archive import archive, due, folders
from gitbus.flow.goals import cancel, lose, place, reopen
from gitbus.flow.items import demote, expire, persist, revise, route, score, strand, strand_broken
from gitbus.flow.sending import broken_rules
from gitbus.flow.settling import settle
from gitbus.forge.base import Forge, PlainForge, Said, View
from gitbus.forge.plain import Approvals
from gitbus.graph import scores_wanted
from gitbus.history import Oid
from gitbus.hub.base import Hub, Moves, RefMove, Store
from gitbus.hub.direct import DirectHub
from gitbus.hub.maintaining import maintain
from gitbus.incoming import Crew, Inbox, Tip
from gitbus.judging import Judge
from gitbus.notifying import Notifier
from gitbus.reading import Reader
from gitbus.states import WAITING
from gitbus.stillness import Stillness
from gitbus.version import refuse_old
from gitbus.watching import Sightings, Tips
from gitbus.writing import CONDUCTOR, Writer

Stage = Callable[[Board, Inbox, datetime], list[Change]]
STAGES: tuple[Stage, ...] = (
    absorb,
    cancel,
    lose,
    reopen,
    place,
    persist,
    score,
    route,
    expire,
    strand,
    settle,
)
"""What a tick does, in this order; each stage decides on the board that the one before left."""

TRIES = 20
"""How often a tick is decided anew because somebody else was faster, before it gives up for now."""


class Conductor:
    """One conductor in one clone.

    Args:
        hub: the shared repository.
        root: the commit that began the bus.
        clock: what time it is.
        state: the clone's local state, where it remembers whom it told what; nobody is told without.
        forge: where people see what waits, and are heard; branches alone unless given.
    """

    def __init__(
        self,
        hub: Hub,
        root: Oid,
        clock: Callable[[], datetime] = utc_now,
        state: Path | None = None,
        forge: Forge | None = None,
    ) -> None:
        self.hub = hub
        self.clock = clock
        self.forge = forge or PlainForge()
        self.reader = Reader(hub.store, root, self.forge.proof)
        self.writer = Writer(hub.store, CONDUCTOR, self.reader.remember)
        self.approvals = Approvals(hub, self.writer)
        self.judge = Judge(hub.store, self.reader, hub.main)
        self.notifier = Notifier(state) if state is not None else None
        self.crew = Sightings(hub, state)
        self.tips = Tips(hub)
        self.stillness = Stillness(hub.store, self.reader, state)
        self.seen: Mapping[str, Oid] = {}

    def tick(self) -> bool:
        """Do what there is to do now; say whether anything was.

        Raises:
            HubMoved: others were faster too often; nothing was lost.
            Unreachable: the hub cannot be used.
        """
        for attempt in range(TRIES):
            outcome = self._try()
            if outcome is not None:
                self._keep_quick(outcome)
                return outcome
            time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))  # noqa: S311 - jitter
        raise HubMoved("the bus's branch moved each time this conductor had decided", rule="hub-moved")

    def _keep_quick(self, acted: bool) -> None:
        """Repack a hub on this machine where that is worth it; what the tick did has landed already."""
        if acted and isinstance(self.hub, DirectHub):
            with contextlib.suppress(Unreachable):
                maintain(self.hub)

    def _try(self) -> bool | None:
        """Decide once and write; None where somebody else was faster."""
        refs = self.hub.look()
        main, now = refs[self.hub.main], self.clock()
        board, changes = self._decide(refs, now)
        made = self.writer.commits(main, changes, now)
        self.approvals.learn(changes, made)
        tip = made[-1] if made else main
        board = replace(board, commit=tip)
        tip, moves = self.approvals.put_up(board, tip, refs, now)
        if tip != main:
            moves.insert(0, RefMove(self.hub.main, main, tip))
        self.seen = refs
        if not moves:
            self._tell(board, now)
            return self._show(board, refs, now)
        done = self.hub.move(moves)
        if tip != main and not done.moved(self.hub.main):
            self.approvals.forget(made)
            return None
        if tip != main:
            if not self.stillness.any:
                self.reader.adopt(board, tip)
            self.stillness.passed(main, tip)
        self.seen = {**refs, self.hub.main: tip}
        self._tell(board, now)
        return self._show(board, _moved(self.seen, moves, done), now) or bool(done.done)

    def _show(self, board: Board, refs: Mapping[str, Oid], now: datetime) -> bool:
        """Let the forge show what waits; whatever goes wrong there changes nothing here."""
        blob = self.reader.effective(refs[self.hub.main]).blob
        return self.forge.keep(View(board, blob, refs, branches(board), now))

    def _tell(self, board: Board, now: datetime) -> None:
        if self.notifier is not None:
            self.notifier.tell(board, now)

    def _decide(self, refs: Mapping[str, Oid], now: datetime) -> tuple[Board, list[Change]]:
        main = refs[self.hub.main]
        board = self.reader.board(main)
        refuse_old(board.bus)
        crew = self.crew.look(refs, board, now)
        tips = self.tips.look(refs, main, board)
        words = self.forge.hear(board, refs)
        board = self._opened(board, tips, crew, {said.item.split(".", 1)[0] for said in words})
        board = self.stillness.halt(board)
        inbox = Inbox(tips, crew)
        changes: list[Change] = []
        for said in words:
            for change in heard(board, said, now):
                board = board.after(change)
                changes.append(change)
        for stage in STAGES:
            for change in stage(board, inbox, now):
                board = board.after(change)
                changes.append(change)
        for change in self._judged(board, refs, now):
            board = board.after(change)
            changes.append(change)
        for change in archived(self.hub.store, board, main, changes, now):
            board = board.after(change)
            changes.append(change)
        return board, changes

    def _judged(self, board: Board, refs: Mapping[str, Oid], now: datetime) -> list[Change]:
        """Return what follows from looking back through history: strand, revise, demote."""
        broken = broken_rules(board)
        found = strand_broken(board, [(item, state, why) for item, (state, why) in sorted(broken.items())])
        edits = self.approvals.edits(board, refs)
        revising = revise(board, edits)
        disproved, altered = self.judge.disproved(board, now)
        taken = {name for name, _, _ in edits}
        more = revise(board, [edit for edit in altered if edit[0] not in taken])
        taken |= {name for name, _, _ in altered}
        demoting = demote(board, [one for one in disproved if one[0] not in taken], now)
        return [*found, *revising, *more, *demoting]

    def _opened(self, board: Board, tips: tuple[Tip, ...], crew: Mapping[str, Crew], more: set[str]) -> Board:
        """Load the settled goals that something may still happen to."""
        able = {capability for one in crew.values() if one.healthy for capability in one.capabilities}
        wanted = more | {answer.goal for tip in tips for commit in tip.commits for answer in commit.answers}
        wanted |= {
            name
            for name, part in board.goals.items()
            if not part.open and part.report is not None and able & set(part.report.missing)
        }
        wanted |= {item.split(".", 1)[0] for item, _ in scores_wanted(board)}
        if any(rule.issue and "dead" in rule.on for rule in board.bus.notify):
            wanted |= {name for name, part in board.goals.items() if _has_dead(part)}
        if self.forge.proof is not None:  # what is shown of an item needs its goal
            wanted |= {item.split(".", 1)[0] for item, part in board.items.items() if part.state in WAITING}
        return self.reader.opened(board, sorted(wanted & set(board.goals)))


def _has_dead(part: GoalBoard) -> bool:
    """Say whether a settled goal has a dead task, as its report tells."""
    return part.report is not None and any(task.state == "dead" for task in part.report.tasks)


def heard(board: Board, said: Said, now: datetime) -> list[Change]:
    """Return the commit that a person's word on the forge asks for; none where it is too late for it."""
    with contextlib.suppress(Refused):
        if said.verb == "redo":
            return [people.redo(board, said.item, said.by, said.text, now)]
        return [people.reject(board, said.item, said.text)]
    return []


def _moved(refs: Mapping[str, Oid], moves: Sequence[RefMove], done: Moves) -> dict[str, Oid]:
    """Return the refs as they are after some of the moves happened."""
    after = dict(refs)
    for move in moves:
        if done.moved(move.ref):
            after.pop(move.ref, None)
            if move.new is not None:
                after[move.ref] = move.new
    return after


def archived(
    store: Store,
    board: Board,
    tip: Oid,
    changes: Sequence[Change],
    now: datetime,
    older: timedelta | None = None,
) -> list[Change]:
    """Return the commit that archives what settled long ago, as it stands at ``tip``.

    What this tick changes itself is left for the next one, so that trees are moved as they are.
    """
    touched = {
        path.split("/")[1].split(".")[0] for change in changes for path in change.writes if "/" in path
    }
    names = [name for name in due(board, now, older) if name not in touched]
    trees = {folder: store.entry(tip, folder) for folder in folders(board, names)}
    found = {folder: entry for folder, entry in trees.items() if entry is not None}
    return [archive(board, names, found, now)] if names and len(found) == len(trees) else []
