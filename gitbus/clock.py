"""What time it is, for those who may ask; the core is told.

Example: ``utc_now().microsecond == 0``.
"""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the time in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)
