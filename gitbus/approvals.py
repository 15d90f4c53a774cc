r"""What an approval holds: everything that the receiver will get, to be read as it stands.

Example: ``approval_of(item, entry, {"body.txt": b"Hello\\n"}).text == "Hello\\n"``.
"""

from __future__ import annotations

from collections.abc import Mapping

from gitbus import ids
from gitbus.history import Oid
from gitbus.records import Approval, Item
from gitbus.records.item import ApprovedFile, LongText

SHOWN = 64 << 10
"""Bytes of a text that an approval shows; a longer one is named by path and hash."""


def approval_of(item: Item, entry: Oid, contents: Mapping[str, bytes]) -> Approval:
    """Return what is approved, to be read as it stands.

    Args:
        item: the item as it waits.
        entry: the commit that made it wait.
        contents: the bytes of its text, HTML and JSON by path below its folder.

    Raises:
        ValueError: the item does not wait.
    """
    if item.expires_at is None:
        raise ValueError(f"{item.id} does not wait for an approval")
    shown = {
        file.role: _shown(file.path, file.sha256, contents[file.path])
        for file in item.payload
        if file.role != "attachment"
    }
    return Approval(
        item=item.id,
        entry=entry,
        revision=item.revision,
        digest=item.digest,
        expires_at=item.expires_at,
        send_at=item.send_at,
        channel=item.channel,
        message=item.message,
        text=shown.get("text"),
        html=shown.get("html"),
        json_=shown.get("json"),
        attachments=tuple(
            ApprovedFile(name=file.name or file.path, bytes=file.bytes, sha256=file.sha256)
            for file in item.payload
            if file.role == "attachment"
        ),
    )


def _shown(path: str, sha256: str, data: bytes) -> str | LongText:
    if len(data) > SHOWN or ids.why_not_text(data):
        return LongText(path=path, sha256=sha256, bytes=len(data))
    return data.decode("utf-8")
