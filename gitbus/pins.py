"""What a clone remembers for good: the root of the bus, and the tips of its branch that it has seen.

Example: ``pin_root(state, root)`` once, ``pinned_root(state)`` ever after.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from gitbus import ids
from gitbus.effects import effect
from gitbus.history import Oid


def write_file(path: Path, data: bytes) -> None:
    """Write a small file whole or not at all, durably."""
    temporary = path.with_name(path.name + f".{os.getpid()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, data)
        effect("fsync", path.name)
        os.fsync(handle)
    finally:
        os.close(handle)
    effect("file-write", path.name)
    temporary.replace(path)


def pin_root(state: Path, root: Oid) -> None:
    """Pin the commit that began the bus."""
    write_file(state / "root", root.encode() + b"\n")


def pinned_root(state: Path) -> Oid | None:
    """Return the pinned root; None where none is."""
    try:
        text = (state / "root").read_text("ascii").strip()
    except (FileNotFoundError, ValueError):
        return None
    return text if ids.OID.fullmatch(text) else None


def seen_tip(state: Path) -> Oid | None:
    """Return the newest tip of the line that this clone has seen."""
    try:
        text = (state / "seen").read_text("ascii").strip()
    except (FileNotFoundError, ValueError):
        return None
    return text if ids.OID.fullmatch(text) else None


def see_tip(state: Path, tip: Oid) -> None:
    """Remember a tip of the line, once everything before it was found to hold."""
    if seen_tip(state) != tip:
        write_file(state / "seen", tip.encode() + b"\n")


def shown_digests(state: Path) -> dict[str, str]:
    """Return which digest of each item was last shown to the person at this clone."""
    try:
        value = json.loads((state / "shown.json").read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def show_digest(state: Path, item: str, digest: str) -> None:
    """Remember that an item was shown with this digest."""
    write_file(
        state / "shown.json", json.dumps({**shown_digests(state), item: digest}, sort_keys=True).encode()
    )
