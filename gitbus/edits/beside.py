"""Edits of what stands beside an item's record: payload, approval, reviews, leases, receipts, resolutions.

Rules: a payload changes with its item's revision, and holds what the item names and nothing else; an
approval comes and goes with the state it is about; a review stays once it was given; what was said of
a transmission is never changed or taken away, but that an approver's resolution may take away what
nobody can read. Each record says the item, the attempt and the person that its path says.

Example: a commit that adds ``lease.1.yaml`` and leaves the item ``approved`` yields
``Edit("unproved-edit", "a.mail.item", "lease.1.yaml came, and nothing is being sent under it")``.
"""

from __future__ import annotations

from collections.abc import Iterator

from gitbus import paths
from gitbus.codec import kind_of_path
from gitbus.edits.looking import Edit, Look, edit
from gitbus.history import FILE, Delta
from gitbus.records import Approval, Item, Lease, Receipt, Record, Resolution, Review
from gitbus.states import WAITING

EVIDENCE: dict[str, type[Lease] | type[Receipt] | type[Resolution]] = {
    "lease": Lease,
    "receipt": Receipt,
    "resolution": Resolution,
}
_APPROVED = frozenset({"approved", "sending", "sent"})
"""The states that an approval has to stand beside."""


def beside(look: Look, delta: Delta, name: str) -> Iterator[Edit]:
    """Yield what is wrong with a change in an item's folder that is not its record."""
    inner = delta.path.removeprefix(f"{paths.item_folder(name)}/")
    if _goes_with_item(look, delta, name):
        return
    if delta.new is not None and delta.new.mode != FILE:
        yield edit(name, f"{inner} is no plain file")
        return
    kind = inner.split(".")[0]
    if kind_of_path(delta.path) is None:
        yield from _payload(look, delta, name, inner)
    elif kind in EVIDENCE:
        yield from _evidence(look, delta, name, kind, inner)
    elif inner == "approval.yaml":
        yield from _approval(look, delta, name)
    else:
        yield from _review(look, delta, name)


def _goes_with_item(look: Look, delta: Delta, name: str) -> bool:
    """Say whether a file went away along with its item, which is reported once."""
    gone = look.touched.get(paths.item(name))
    return delta.new is None and gone is not None and gone.new is None


# --- payload


def _payload(look: Look, delta: Delta, name: str, inner: str) -> Iterator[Edit]:
    item = look.new(paths.item(name), Item)
    if item is None:
        if look.after(paths.item(name)) is None:
            yield edit(name, f"{inner} belongs to no item")
        return
    named = inner in {file.path for file in item.payload}
    if delta.new is not None and not named:
        yield edit(name, f"{inner} is no file of its payload")
    elif not _may_change(look, name, item):
        yield edit(name, f"{inner} was changed without a revision")
    elif delta.new is None and named:
        yield edit(name, f"{inner} was taken away, and the item names it")


def _may_change(look: Look, name: str, item: Item) -> bool:
    """Say whether a payload may change: with a new revision, or in a merge that is therefore no approval."""
    if paths.item(name) not in look.touched:
        return False
    old = look.old_item(name)
    if item.state == "persisted":
        return old is None or old.revision != item.revision
    return item.state == "approved" and old is not None and old.state in WAITING


# --- approval, reviews


def _approval(look: Look, delta: Delta, name: str) -> Iterator[Edit]:
    item, old = look.new(paths.item(name), Item), look.old_item(name)
    if item is None:
        return
    if delta.new is None:
        if item.state in _APPROVED:
            yield edit(name, f"its approval was taken away while it was {item.state}")
    elif item.state != "approved" or old is None or old.state not in WAITING:
        yield edit(name, f"an approval came, and it did not become approved: it is {item.state}")
    else:
        yield from _says(look, delta, name, Approval)


def _review(look: Look, delta: Delta, name: str) -> Iterator[Edit]:
    if delta.new is None:
        if look.memo.read(delta.old, delta.path, Review) is not None:  # else it goes on standing as a no
            yield edit(name, f"the review {delta.path.rpartition('/')[2]} was taken away")
    else:
        yield from _says(look, delta, name, Review)


# --- what was said of a transmission


def _evidence(look: Look, delta: Delta, name: str, kind: str, inner: str) -> Iterator[Edit]:
    model = EVIDENCE[kind]
    if delta.old is not None:
        if not _is_resolved_away(look, delta, name, model):
            how = "removed" if delta.new is None else "changed"
            yield Edit("evidence-changed", name, f"{inner} was {how}")
        return
    record = look.new(delta.path, model)
    if record is None:
        return  # it cannot be read, which is a finding of its own
    yield from _says(look, delta, name, model)
    if isinstance(record, Lease):
        yield from _leased(look, name, record, inner)


def _is_resolved_away(
    look: Look, delta: Delta, name: str, model: type[Lease] | type[Receipt] | type[Resolution]
) -> bool:
    """Say whether a file that nobody can read went away with a resolution, which is proved elsewhere."""
    folder = f"{paths.item_folder(name)}/resolution."
    return (
        delta.new is None
        and look.memo.read(delta.old, delta.path, model) is None
        and any(path.startswith(folder) and look.adds(path) for path in look.touched)
    )


def _leased(look: Look, name: str, lease: Lease, inner: str) -> Iterator[Edit]:
    old, item = look.old_item(name), look.new(paths.item(name), Item)
    if look.adds(paths.receipt(name, lease.attempt)):
        return  # the branch had been put back, and what was done was done
    if item is None or old is None or (old.state, item.state) != ("approved", "sending"):
        yield edit(name, f"{inner} came, and nothing is being sent under it")
    elif (lease.digest, lease.revision, lease.attempt) != (item.digest, item.revision, item.attempt):
        yield edit(name, f"{inner} is about other content, or another attempt, than the item")


# --- a record and its path


def _says(look: Look, delta: Delta, name: str, model: type[Record]) -> Iterator[Edit]:
    record = look.new(delta.path, model)
    leaf = delta.path.rpartition("/")[2].removesuffix(".yaml")
    match record:
        case Approval(item=item):
            said = (item, "approval")
        case Review(item=item, person=person):
            said = (item, person)
        case Lease(item=item, attempt=attempt) | Receipt(item=item, attempt=attempt):
            said = (item, f"{model.__name__.lower()}.{attempt}")
        case Resolution(item=item, attempt=attempt):
            said = (item, f"resolution.{attempt}")
        case _:
            return
    if said != (name, leaf):
        yield edit(name, f"{leaf}.yaml says that it is about {' '.join(said)}")
