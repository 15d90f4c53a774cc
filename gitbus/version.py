"""Whether this gitbus is new enough to write on a bus: ``requires`` of ``bus.yaml``.

Example: ``refuse_old(bus)`` raises where ``requires: ">=9.0"`` and this is 0.1.
"""

from __future__ import annotations

import re

from gitbus import __version__
from gitbus.errors import Refused
from gitbus.records import Bus

_REQUIRES = re.compile(r">=\s*(\d+(?:\.\d+){0,2})")


def numbers(version: str) -> tuple[int, ...]:
    """Return a version's numbers, for comparing."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def refuse_old(bus: Bus) -> None:
    """Refuse to write on a bus that wants a newer gitbus.

    Raises:
        Refused: this one is older (rule ``too-old``), or what is required cannot be understood.
    """
    if bus.requires is None:
        return
    match = _REQUIRES.fullmatch(bus.requires.strip())
    if match is None or numbers(__version__) < numbers(match[1]):
        raise Refused(
            f"this bus requires gitbus {bus.requires}, and this is {__version__}",
            rule="too-old",
            remedy="pip install --upgrade gitbus; looking around works all the same",
        )
