"""The legal moves of a task and of an item, as tables. Code looks them up; nothing else is legal.

Example: ``may("item", "approved", "sending", "lease")`` is True, and
``may("item", "persisted", "approved", "approve")`` is False, so the audit reports it.
"""

from __future__ import annotations

from typing import Literal

NONE = "-"
"""The state of what does not exist yet."""

TASK: frozenset[tuple[str, str, str]] = frozenset(
    (source, target, verb)
    for verb, pairs in {
        "release": [(state, "ready") for state in (NONE, "skipped", "ready", "cancelled")],
        "assign": [(state, "assigned") for state in (NONE, "skipped", "ready", "cancelled")],
        "absorb": [
            ("assigned", "done"),
            ("ready", "done"),  # a lost attempt's result that still came first
            ("assigned", "ready"),
            ("assigned", "dead"),
            ("ready", "dead"),
            ("ready", "ready"),
        ],
        "lose": [("assigned", "ready"), ("assigned", "dead")],
        "skip": [(state, to) for state in (NONE, "ready", "cancelled") for to in ("skipped", "dead")],
        "reopen": [("skipped", "ready")],
        "cancel": [(NONE, "cancelled"), ("ready", "cancelled"), ("assigned", "cancelled")],
        "redo": [(state, "ready") for state in ("ready", "assigned", "done", "dead", "skipped")],
        "retry": [("dead", "ready"), ("skipped", "ready")],
    }.items()
    for source, target in pairs
)
"""(from, to, verb) for tasks."""

WAITING = ("in_review", "awaiting_approval")
BEFORE_SENDING = ("persisted", "scored", *WAITING, "approved")

ITEM: frozenset[tuple[str, str, str]] = frozenset(
    (source, target, verb)
    for verb, pairs in {
        "persist": [(NONE, "persisted")],
        "score": [("persisted", "scored")],
        "route": [("scored", state) for state in WAITING],
        "approve": [(state, "approved") for state in WAITING],
        "lease": [("approved", "sending")],
        "attest": [
            ("sending", "sent"),
            ("sending", "stuck"),
            ("sending", "approved"),
            ("sending", "failed"),
            ("stuck", "sent"),
        ],
        "strand": [
            (source, target)
            for source in ("sending", "in_review", "awaiting_approval", "approved", "failed", "sent")
            for target in ("stuck", "sent")
            if source != target
        ],
        "resolve": [("stuck", "sent"), ("stuck", "awaiting_approval")],
        "retry": [(state, waiting) for state in ("failed", "expired") for waiting in WAITING],
        "demote": [("approved", state) for state in WAITING],
        "reject": [(state, "rejected") for state in BEFORE_SENDING],
        "withdraw": [(state, "withdrawn") for state in BEFORE_SENDING],
        "expire": [(state, "expired") for state in (*WAITING, "approved")],
        "revise": [(state, "persisted") for state in (*BEFORE_SENDING, "rejected", "failed", "expired")],
    }.items()
    for source, target in pairs
)
"""(from, to, verb) for items."""

TASK_FINAL = frozenset({"done", "dead", "skipped", "cancelled"})
ITEM_FINAL = frozenset({"sent", "withdrawn"})
ITEM_SETTLED = frozenset({"sent", "withdrawn", "rejected", "expired"})
"""States in which nobody is waited for (a human may still put up ``rejected`` and ``expired`` anew)."""


def may(kind: Literal["task", "item"], source: str, target: str, verb: str) -> bool:
    """Say whether a task or item may go from one state to another by this verb."""
    return (source, target, verb) in (TASK if kind == "task" else ITEM)
