"""The one door that every effect on the outside world passes.

Each function that changes something which outlives the process (an object written, a ref moved,
a push, an fsync, a connection, a protocol line, a receipt) calls :func:`effect` right before it
does so. In production that is a call of nothing. A test sets :data:`hook`, numbers the effects
and kills the process, or raises, at the n-th.

Names in use: ``object-write``, ``ref-move``, ``fetch``, ``push``, ``fsync``, ``file-write``, ``connect``,
``protocol-line``, ``deliver``, ``journal``.
"""

from __future__ import annotations

from collections.abc import Callable

hook: Callable[[str, str], None] | None = None
"""Called with the effect's name and a detail for people; None in production."""


def effect(name: str, detail: str = "") -> None:
    """Announce the effect that the caller performs next.

    Args:
        name: the kind of effect, one of the names above.
        detail: what it acts on, for a person who reads a test's report.
    """
    if hook is not None:
        hook(name, detail)
