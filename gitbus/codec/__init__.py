"""Records as YAML: reading what anybody wrote, writing what everybody reads, editing what a human keeps.

The only user of ruamel.yaml. ``read`` is suspicious, ``write`` is canonical, ``edit`` changes a
human's file and leaves every other byte of it alone.

Example: ``read(write(task), Task) == task``.
"""

from gitbus.codec.editing import edit, remove
from gitbus.codec.emitting import emit
from gitbus.codec.kinds import kind_of_path
from gitbus.codec.loading import LIMIT, Loaded, load
from gitbus.codec.validating import problems, read, read_any, read_as_written, write

__all__ = [
    "LIMIT",
    "Loaded",
    "edit",
    "emit",
    "kind_of_path",
    "load",
    "problems",
    "read",
    "read_any",
    "read_as_written",
    "remove",
    "write",
]
