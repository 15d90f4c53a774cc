"""Identifiers, durations, sizes, times and digests: the small values that records are made of.

Rules: an identifier becomes a path segment and a part of a ref, so it is short, lower case and
the same on every file system. Times are aware and in UTC, whole seconds when gitbus writes them.

Example: ``item_id("release-1-0", "mail", "announce") == "release-1-0.mail.announce"``.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?")
SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
OID = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")
MAX_SEGMENTS = 8

DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{name}{digit}" for name in ("com", "lpt") for digit in "0123456789"]
)
"""Names that Windows keeps for devices, in lower case."""

LONGEST = timedelta(days=36_500)
"""The longest duration; one that is added to a time must not leave the calendar."""

_DURATION = re.compile(r"(0|[1-9][0-9]{0,8})([smhd])")
_SIZE = re.compile(r"(0|[1-9][0-9]{0,11})(B|KiB|MiB|GiB)?")
_RATE = re.compile(r"([1-9][0-9]{0,5})/([smhd])")
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(:\d{2})?(\.\d{1,9})?(?:([Zz]|[+-]\d{2}:\d{2})| ([A-Za-z0-9_+/-]{1,64}))"
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {None: 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def why_not_id(text: str) -> str | None:
    """Return why ``text`` is no identifier; None if it is one."""
    if not ID.fullmatch(text):
        return "an identifier has 1 to 48 of a-z, 0-9 and -, and neither begins nor ends with -"
    if text in DEVICES or text == "lock":
        return f"{text} is a reserved name"
    return None


def why_not_path(text: str) -> str | None:
    """Return why ``text`` is no path of an artifact; None if it is one."""
    segments = text.split("/")
    if len(segments) > MAX_SEGMENTS:
        return f"a path has at most {MAX_SEGMENTS} segments"
    for segment in segments:
        if not SEGMENT.fullmatch(segment):
            return "a path is made of segments of 1 to 100 letters, digits, '.', '_' and '-', not beginning with '.'"
        if segment.lower().split(".", 1)[0] in DEVICES:
            return f"{segment} is a device name on Windows"
    return None


def item_id(goal: str, task: str, name: str) -> str:
    """Return the id of an item: ``goal.task.name``."""
    return f"{goal}.{task}.{name}"


class ItemName(NamedTuple):
    """The parts of an item's id."""

    goal: str
    task: str
    name: str


def split_item(item: str) -> ItemName | None:
    """Return the parts of an item's id; None if it is not one."""
    parts = item.split(".")
    if len(parts) != 3 or any(why_not_id(part) for part in parts):
        return None
    return ItemName(*parts)


def duration(text: str) -> timedelta:
    """Parse ``30s``, ``15m``, ``2h`` or ``7d``.

    Raises:
        ValueError: it is none of these.
    """
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError("a duration is a whole number and s, m, h or d, such as 15m")
    found = timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
    if found > LONGEST:
        raise ValueError(f"a duration is at most {duration_text(LONGEST)}")
    return found


def duration_text(value: timedelta) -> str:
    """Write a duration with the largest unit that divides it."""
    seconds = int(value.total_seconds())
    for unit in "dhm":
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}s"


def size(text: str | int) -> int:
    """Parse ``64KiB``, ``1MiB`` or a number of bytes into bytes.

    Raises:
        ValueError: it is none of these.
    """
    match = _SIZE.fullmatch(str(text))
    if not match:
        raise ValueError("a size is a whole number of bytes, or one with KiB, MiB or GiB, such as 64KiB")
    return int(match[1]) * _BYTES[match[2]]


def size_text(value: int) -> str:
    """Write a size with the largest unit that divides it."""
    for unit in ("GiB", "MiB", "KiB"):
        factor = _BYTES[unit]
        if value and value % factor == 0:
            return f"{value // factor}{unit}"
    return str(value)


def rate(text: str) -> tuple[int, timedelta]:
    """Parse ``30/m`` into how many and in how long.

    Raises:
        ValueError: it is not of that form.
    """
    match = _RATE.fullmatch(text)
    if not match:
        raise ValueError("a rate is a whole number, a slash and s, m, h or d, such as 30/m")
    return int(match[1]), timedelta(seconds=_SECONDS[match[2]])


def parse_time(text: str) -> datetime:
    """Parse an RFC 3339 time, or a local time and a zone's name, into UTC.

    ``2026-12-07T09:00 Europe/Berlin`` is accepted where that wall clock shows this time exactly once.

    Raises:
        ValueError: it is no such time, or the zone is not known on this machine.
    """
    match = _TIME.fullmatch(text)
    if not match:
        raise ValueError("a time is RFC 3339, such as 2026-11-30T20:05:00Z, or local with a zone's name")
    date, minutes, seconds, fraction, offset, zone = match.groups()
    stamp = f"{date}T{minutes}{seconds or ':00'}{(fraction or '')[:7]}"
    if not 1000 <= int(date[:4]) <= 9000:  # so that neither a zone nor a duration leaves the calendar
        raise ValueError("a time's year is between 1000 and 9000")
    if offset:
        return datetime.fromisoformat(stamp + ("Z" if offset in "Zz" else offset)).astimezone(UTC)
    return _in_zone(datetime.fromisoformat(stamp), zone)


def _in_zone(local: datetime, zone: str) -> datetime:
    try:
        where = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"the time zone {zone} is not known on this machine") from None
    early, late = (local.replace(tzinfo=where, fold=fold).astimezone(UTC) for fold in (0, 1))
    if early != late:
        raise ValueError(f"{local.isoformat()} does not exist exactly once in {zone}; write an offset")
    return early


def time_text(value: datetime) -> str:
    """Write an aware time as RFC 3339 in UTC with ``Z``."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def why_not_text(data: bytes) -> str | None:
    """Return why some bytes cannot be shown to a person as text; None if they can."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"byte {error.start} is not UTF-8"
    odd = next(
        (char for char in text if (ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160), None
    )
    if odd is not None:
        return f"it holds the control character U+{ord(odd):04X}" + (
            " (write lines with LF alone)" if odd == "\r" else ""
        )
    return None


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hex."""
    return hashlib.sha256(data).hexdigest()


def digest_of(value: object) -> str:
    """Return ``sha256:`` and the hash of a JSON value's canonical form (RFC 8785 for text and integers).

    The value holds only mappings, lists, text, whole numbers, booleans and null, for which sorted
    keys and no white space make one text.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return "sha256:" + sha256(text.encode("utf-8"))


def seal_of(nonce: str) -> str:
    """Return the seal that the nonce (32 hex digits, 16 bytes) opens."""
    return "sha256:" + sha256(bytes.fromhex(nonce))
