"""What is going on, in one document: the board, the crew, and everything that somebody has to mend.

Example: ``overview(bus).goals[0].state``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gitbus import paths, views
from gitbus.documents import Problem, Status
from gitbus.errors import Refused
from gitbus.history import Oid
from gitbus.proof.bus import sending_on
from gitbus.stillness import Stillness
from gitbus.watching import Sightings, odd

if TYPE_CHECKING:
    from gitbus.bus import Bus


def overview(bus: Bus, goal: str | None = None) -> Status:
    """Return the ``Status`` document of a bus.

    Args:
        bus: the bus.
        goal: show this goal alone.

    Raises:
        Refused: there is no such goal (rule ``no-such-goal``).
    """
    refs = bus.refs()
    board = Stillness(bus.hub.store, bus.reader, bus.state).halt(bus.whole_board())
    if goal is not None and goal not in board.goals:
        raise Refused(f"there is no goal {goal}", rule="no-such-goal", remedy="gitbus goal list")
    sightings = Sightings(bus.hub, bus.state)
    crew = sightings.look(refs, board, bus.now())
    sending = sending_on(bus.effective(), bus.hub.store) is None
    problems = tuple(_problems(bus, refs, sightings))
    return views.status(board, crew, sending=sending, goal=goal, problems=problems)


def _problems(bus: Bus, refs: Mapping[str, Oid], sightings: Sightings) -> Iterator[Problem]:
    """Yield what is wrong beside the records that cannot be read."""
    for one in bus.bus_problems():
        yield Problem(path=one["path"], line=one["line"], message=one["message"], remedy=one.get("remedy"))
    for where, what, remedy in odd(refs, bus.hub, sightings, bus.now()):
        yield Problem(path=where, line=0, message=what, remedy=remedy)
    for ref in sorted(refs):
        if ref.startswith(paths.KEPT):
            yield _kept(ref.removeprefix(paths.HEADS))


def _kept(branch: str) -> Problem:
    """Return the notice of what somebody typed on an approval branch that was replaced meanwhile."""
    return Problem(
        path=branch,
        line=0,
        message="an edit on an approval branch that is no revision: what it was made on has changed, or it"
        " changes more than a payload",
        remedy="look at it (git fetch, git log -p), take what you want of it (gitbus revise), then delete it:"
        f" git push REMOTE --delete {branch}",
    )
