"""Every record of the bus, as frozen values.

``KINDS`` maps a record's ``kind`` to its class. Reading and writing YAML is ``gitbus.codec``'s.
"""

from gitbus.records.base import Part, Record
from gitbus.records.bus import Bus, Channel, Person
from gitbus.records.goal import Goal, Need, Node, PlannedNode, Template
from gitbus.records.item import Approval, Item, Lease, Message, PayloadFile, Receipt, Resolution, Review
from gitbus.records.work import Presence, Refusal, Report, Result, Task, Worker

KINDS: dict[str, type[Record]] = {
    kind.model_fields["kind"].default: kind
    for kind in (
        Bus,
        Worker,
        Presence,
        Goal,
        Task,
        Result,
        Refusal,
        Report,
        Item,
        Review,
        Approval,
        Lease,
        Resolution,
        Receipt,
    )
}

__all__ = [
    "KINDS",
    "Approval",
    "Bus",
    "Channel",
    "Goal",
    "Item",
    "Lease",
    "Message",
    "Need",
    "Node",
    "Part",
    "PayloadFile",
    "Person",
    "PlannedNode",
    "Presence",
    "Receipt",
    "Record",
    "Refusal",
    "Report",
    "Resolution",
    "Result",
    "Review",
    "Task",
    "Template",
    "Worker",
]
