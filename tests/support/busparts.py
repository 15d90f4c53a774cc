"""What a bus repository of a test is made of: keys, lines, signatures and records.

Example: ``make_bus(sending={"enabled": False}).person("ada").keys == (public("ada"),)``.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gitbus import ids
from gitbus.history import Oid
from gitbus.records import Bus, Item, Lease, Message, PayloadFile
from gitbus.records.item import Seals, Source, digest

START = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)
ITEM = "a.mail.item"
PEOPLE: Mapping[str, tuple[str, ...]] = {
    "ada": ("approver", "reviewer"),
    "bob": ("approver", "reviewer"),
    "rita": ("reviewer",),
    "oscar": ("operator",),
}


@functools.cache
def session() -> Path:
    """Return the folder of this session's keys and template; it goes with the process."""
    folder = tempfile.mkdtemp(prefix="gitbus-busrepo-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@functools.cache
def key(name: str) -> Path:
    """Return the path of a private ed25519 key; the public one stands beside it."""
    path = session() / f"key-{name}"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@test", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def public(name: str) -> str:
    """Return a key's public line."""
    return key(name).with_suffix(".pub").read_text("utf-8").strip()


def ident(name: str, when: datetime) -> str:
    """Return an author or committer line."""
    return f"{name.title()} <{name}@test> {int(when.timestamp())} +0000"


def sign(data: bytes, name: str) -> str:
    """Return an armored SSH signature as git makes one."""
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(key(name))]
    return subprocess.run(command, input=data, check=True, capture_output=True).stdout.decode().strip()


def with_signature(data: bytes, signature: str) -> bytes:
    """Return a commit's bytes with a signature header."""
    head, _, message = data.partition(b"\n\n")
    header = b"gpgsig " + signature.replace("\n", "\n ").encode()
    return head + b"\n" + header + b"\n\n" + message


def make_bus(roles: Mapping[str, Sequence[str]] = PEOPLE, **policy: Any) -> Bus:
    """Return a Bus with sending on, people with these roles, each with a key of that name, and the channel ``news``."""
    given: dict[str, Any] = {
        "name": "acme",
        "people": [
            {"id": name, "email": f"{name}@test", "roles": list(some), "keys": [public(name)]}
            for name, some in roles.items()
        ],
        "sending": {"enabled": True},
        "channels": {
            "news": {
                "transport": "smtp",
                "host": "smtp.acme.example",
                "username": "news@acme.example",
                "from": ["news@acme.example"],
                "recipients": ["*@acme.example"],
            }
        },
    }
    return Bus.model_validate({**given, **policy})


def changed_bus(bus: Bus, **policy: Any) -> Bus:
    """Return a Bus with some of its parts changed: mappings are merged, all else is replaced."""
    data = bus.model_dump(mode="json", by_alias=True)
    for name, value in policy.items():
        data[name] = {**data[name], **value} if isinstance(value, dict) else value
    return Bus.model_validate(data)


def make_item(name: str = ITEM, text: str = "Hello\n", **fields: Any) -> Item:
    """Return a persisted item with one text."""
    message = Message.model_validate(
        {"from": "news@acme.example", "to": ["list@acme.example"], "subject": "Release 1.0"}
    )
    data = text.encode()
    payload = (
        PayloadFile(
            role="text", path="body.txt", media_type="text/plain", sha256=ids.sha256(data), bytes=len(data)
        ),
    )
    parts = name.split(".")
    given: dict[str, Any] = {
        "id": name, "state": "persisted", "channel": "news", "message": message, "payload": payload,
        "source": Source(goal=parts[0], task=parts[1], attempt=1, worker="laptop", commit="0" * 40), "send_at": None,
        "confidence": 0.9,
    }  # fmt: skip
    given |= fields
    fit = digest(given["channel"], given["message"], given["payload"], given["send_at"])
    return Item(**{"digest": fit, **given})


def make_nonces(seed: str) -> dict[str, str]:
    """Return the two nonces of a lease, the same for the same seed."""
    return {word: ids.sha256(f"{seed} {word}".encode())[:32] for word in ("sent", "not_sent")}


def make_lease(item: Item, approval: Oid, blob: Oid, when: datetime, nonces: Mapping[str, str]) -> Lease:
    """Return a lease of an item's present attempt."""
    seals = Seals(sent=ids.seal_of(nonces["sent"]), not_sent=ids.seal_of(nonces["not_sent"]))
    return Lease(
        item=item.id, revision=item.revision, attempt=item.attempt, digest=item.digest, approval=approval,
        bus=blob, holder="test:1", seals=seals, leased_at=when, expires_at=when + timedelta(minutes=5),
    )  # fmt: skip
