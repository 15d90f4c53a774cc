"""What a channel allows, looked at once more where the secret is: senders and recipients.

The sender has already looked; this is for the day on which it was wrong.

Example: ``look({"transport": "maildir"}, outgoing)`` passes, as that channel names no limits.
"""

from __future__ import annotations

from gitbus.addresses import allowed, sender_allowed
from gitbus.errors import Refused
from gitbus.transports.base import Channel, Outgoing


def look(channel: Channel, outgoing: Outgoing) -> None:
    """Check an item's sender and recipients against the channel.

    Raises:
        Refused: ``sender-not-allowed``, ``recipient-not-allowed``, or no address where one is needed.
    """
    _sender(channel, outgoing)
    patterns = channel.get("recipients")
    if patterns is None:
        return
    for recipient in recipients(outgoing):
        if not (recipient in patterns or allowed(recipient, patterns)):
            raise Refused(
                f"{recipient!a} is not on the channel's list of recipients",
                rule="recipient-not-allowed",
                remedy="put it on the channel's `recipients`",
            )


def recipients(outgoing: Outgoing) -> tuple[str, ...]:
    """Return everybody it goes to, as written."""
    lists = (outgoing.message.get(key) or () for key in ("to", "cc", "bcc"))
    return tuple(one for some in lists for one in some)


def _sender(channel: Channel, outgoing: Outgoing) -> None:
    senders, sender = channel.get("from") or (), outgoing.message.get("from")
    if senders and sender and not (sender in senders or sender_allowed(sender, senders)):
        raise Refused(
            f"{sender!a} is not one of the channel's senders",
            rule="sender-not-allowed",
            remedy="use one of the channel's `from`",
        )
