"""gitbus: a git repository as the bus for a fleet of agents. Nothing leaves unapproved or twice.

Example::

    from gitbus import Bus

    with Bus.open("acme") as bus:
        print(bus.board().goals)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gitbus.bus import Bus

__version__ = "0.1.0"
__all__ = ["Bus", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the API when it is first asked for, so that ``gitbus --version`` need not."""
    if name == "Bus":
        from gitbus.bus import Bus

        return Bus
    raise AttributeError(name)
