"""The hub and everything that touches git: the only user of GitPython and of the git program."""

from gitbus.hub.base import Author, Draft, Hub, Moves, RefMove, Store
from gitbus.hub.create import create_clone, create_hub
from gitbus.hub.maintaining import maintain
from gitbus.hub.opening import find_clone, hub_url, local_state, open_hub

__all__ = [
    "Author",
    "Draft",
    "Hub",
    "Moves",
    "RefMove",
    "Store",
    "create_clone",
    "create_hub",
    "find_clone",
    "hub_url",
    "local_state",
    "maintain",
    "open_hub",
]
