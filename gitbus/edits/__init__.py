"""Changes on the line that no move allows: what a commit changed, path by path, against the tables.

Rules: whatever widens needs what its row of the table asks for; whatever narrows may be done by anybody,
but changes nothing else along with it. A folder of the bus holds what has its place there. A commit that
says what it does changes only what that does. Who may write is left to signatures, where there are any;
this is about what may be written at all.

Example: a commit that changes a recipient in ``item.yaml`` and leaves the revision as it was yields
``Edit("unproved-edit", "a.mail.item", "message changed while it went from scored to scored")``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitbus import paths
from gitbus.codec import kind_of_path
from gitbus.edits.archives import archived, moves
from gitbus.edits.beside import beside
from gitbus.edits.goals import goal_edits, worker_edits
from gitbus.edits.items import record
from gitbus.edits.looking import Edit, Look, Memo, edit, subject_of
from gitbus.edits.standing import Still, Wrong
from gitbus.history import Delta

_ITEMS = ("outbox/",)
_GOALS = ("goals/",)
PLACES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("persist", "score", "route", "revise", "demote", "reject", "withdraw"), _ITEMS),
    **dict.fromkeys(("expire", "strand", "resolve", "approve", "review", "lease", "accept"), _ITEMS),
    **dict.fromkeys(("release", "assign", "lose", "skip", "reopen", "cancel", "settle", "add"), _GOALS),
    "absorb": (*_GOALS, "refused/"),
    "attest": (*_ITEMS, "archive/"),
    "redo": (*_GOALS, *_ITEMS),
    "retry": (*_GOALS, *_ITEMS),
    "archive": (*_GOALS, *_ITEMS, "archive/"),
    "config": (paths.BUS,),
    "put up": (),
}
"""Where a commit that says this verb changes anything."""


def unproved_edits(look: Look) -> Iterator[Edit]:
    """Yield what a commit of the line changed and must not.

    Args:
        look: the commit; a root changes what it likes.
    """
    if not look.commit.parents:
        return
    yield from _elsewhere(look)
    yield from moves(look)
    for delta in look.deltas:
        if not look.is_moved(delta.path):
            yield from _placed(look, delta)


def _placed(look: Look, delta: Delta) -> Iterator[Edit]:
    """Yield what is wrong with one change, by the place where it is."""
    match delta.path.split("/"):
        case ["outbox", name, "item.yaml"]:
            yield from record(look, delta, name)
        case ["outbox", name, _, *_]:
            yield from beside(look, delta, name)
        case ["goals", goal, *rest] if rest:
            yield from goal_edits(look, delta, goal, rest)
        case ["archive", *_]:
            yield from archived(look, delta)
        case ["workers", *_] if kind_of_path(delta.path) is not None or delta.new is None:
            yield from worker_edits(look, delta)
        case ["outbox" | "workers", *_] if delta.new is not None:
            yield edit(delta.path, "nothing of the bus has its place there")
        case _:
            return


def _elsewhere(look: Look) -> Iterator[Edit]:
    """Yield what a commit changed that does not belong to what it says that it does."""
    places = PLACES.get(look.verb)
    if places is None:
        return
    for path in look.touched:
        if not path.startswith(places):
            yield edit(subject_of(path), f"{path} was changed by a commit that is to {look.verb}")


__all__ = ["Edit", "Look", "Memo", "Still", "Wrong", "edit", "subject_of", "unproved_edits"]
