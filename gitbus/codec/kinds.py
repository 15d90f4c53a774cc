"""Which record stands where on the bus's branch.

Whatever lies in a record's place is one, however its file is called: a record that cannot be read
must not be passed over in silence.

Example: ``kind_of_path("archive/2026/12/goals/a/goal.yaml") is Goal``.
"""

from __future__ import annotations

import re

from gitbus.records import KINDS, Record

_PLACES = (
    (r"bus\.yaml", "Bus"),
    (r"presence\.yaml", "Presence"),
    (r"workers/*\.yaml", "Worker"),
    (r"refused/*\.yaml", "Refusal"),
    (r"goals/*/goal\.yaml", "Goal"),
    (r"goals/*/report\.yaml", "Report"),
    (r"goals/*/tasks/*\.yaml", "Task"),
    (r"goals/*/results/*\.yaml", "Result"),
    (r"goals/*/refused/*\.yaml", "Refusal"),
    (r"outbox/*/item\.yaml", "Item"),
    (r"outbox/*/approval\.yaml", "Approval"),
    (r"outbox/*/reviews/*\.yaml", "Review"),
    (r"outbox/*/lease\.*\.yaml", "Lease"),
    (r"outbox/*/receipt\.*\.yaml", "Receipt"),
    (r"outbox/*/resolution\.*\.yaml", "Resolution"),
)
_TABLE = tuple((re.compile(place.replace("*", "[^/]+"), re.DOTALL), KINDS[kind]) for place, kind in _PLACES)
_ARCHIVED = re.compile(r"archive/[^/]+/[^/]+/(?=goals/|outbox/)")


def kind_of_path(path: str) -> type[Record] | None:
    """Return which record stands at a path of the bus; None where none does (a payload, an artifact)."""
    if not path.endswith(".yaml"):
        return None
    path = _ARCHIVED.sub("", path, count=1) if path.startswith("archive/") else path
    return next((kind for place, kind in _TABLE if place.fullmatch(path)), None)
