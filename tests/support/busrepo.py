"""Real bus repositories for tests, built fast: git's own objects, real keys, real signed merges, fixed dates.

Commits by conductor and sender, and signed ones with one parent, are written in this process; what a
person does with git (merge, pull, rebase, squash) is done by git.

Example::

    bus = BusRepo(tmp_path)                       # ada and bob approve, rita reviews, oscar operates
    item = bus.put_up("a.mail.item")              # persisted, scored, waiting; flip and `put up`
    bus.merge("ada", item)                        # git merge --no-ff -S gitbus/approve/a.mail.item
    assert bus.prove(item).proved
    nonces = bus.lease(item)
    bus.attest(item, "sent", nonces)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gitbus import codec, paths
from gitbus.approvals import approval_of
from gitbus.history import FILE, Oid
from gitbus.proof.approval import prove_approval
from gitbus.proof.bus import Effective, effective
from gitbus.proof.leases import FoundLease, leases_of
from gitbus.proof.line import line_findings
from gitbus.proof.values import Proof
from gitbus.records import (
    Approval,
    Item,
    Receipt,
    Resolution,
    Review,
)
from gitbus.records.item import Score
from tests.support.busparts import (
    ITEM,
    PEOPLE,
    START,
    changed_bus,
    key,
    make_bus,
    make_item,
    make_lease,
    make_nonces,
    public,
    sign,
)
from tests.support.gitrepo import Content, GitRepo


class BusRepo(GitRepo):
    """One repository with a bus, which is hub and working clone at once.

    ``now`` goes a minute forward with every commit.

    Args:
        folder: where it goes.
        branch: the bus's branch.
        policy: what ``bus.yaml`` says beside its people and the channel ``news``.
    """

    def __init__(self, folder: Path, branch: str = "main", **policy: Any) -> None:
        super().__init__(folder / "repo", branch, START)
        self.bus = make_bus(**policy)
        self.root = self.commit({paths.BUS: self.bus}, "init", parents=[])
        self._entries: dict[str, Oid] = {}

    # --- the way of an item

    def item(self, name: str = ITEM, tip: Oid | None = None) -> Item:
        """Return an item as it stands."""
        found: Item = self.read(paths.item(name), Item, tip)
        return found

    def read(self, path: str, model: type[Any], tip: Oid | None = None) -> Any:
        """Return the record at a path."""
        entry = self.store.entry(tip or self.tip, path)
        assert entry is not None, path
        return codec.read(self.store.blob(entry.oid), model, path=path)

    def put(self, name: str = ITEM, text: str = "Hello\n", **fields: Any) -> Item:
        """Persist and score an item."""
        item = make_item(name, text, **fields)
        payload = {f"{paths.item_folder(name)}/body.txt": text}
        self.commit({paths.item(name): item, **payload}, f"persist {name}")
        scored = item.model_copy(update={"state": "scored", "scores": (Score(by="producer", value=0.9),)})
        self.commit({paths.item(name): scored}, f"score {name}")
        return scored

    def wait(self, name: str = ITEM, state: str = "awaiting_approval", **fields: Any) -> Oid:
        """Let an item wait for its approval from now on; return the entry."""
        expires = self.now + timedelta(minutes=1) + self.bus.approval.expires
        item = self.item(name).model_copy(update={"state": state, "expires_at": expires, **fields})
        changes: dict[str, Content] = {paths.item(name): item}
        if self.store.entry(self.tip, paths.approval(name)) is not None:
            changes[paths.approval(name)] = None
        self._entries[name] = self.commit(changes, f"route {name}: {state}")
        return self._entries[name]

    def flip(self, *names: str, branch: str | None = None, entries: Mapping[str, Oid] | None = None) -> Oid:
        """Make the approval branch of an item, or of several as a batch; return its commit."""
        names = names or (ITEM,)
        found = {name: (entries or self._entries)[name] for name in names}
        parent = list(found.values())[-1]
        changes = {
            path: content
            for name in names
            for path, content in self.flipped(name, found[name], parent).items()
        }
        return self.commit(
            changes,
            f"approve {' '.join(names)}\n\nGitbus-Verb: approve\n"
            + "".join(f"Gitbus-Item: {name}\n" for name in names),
            parents=[parent],
            on=f"gitbus/approve/{branch or names[0]}",
            when=self.store.commit(parent).committer.when,
        )

    def flipped(self, name: str, entry: Oid, at: Oid, /, **fields: Any) -> dict[str, Content]:
        """Return the two files of a flip; ``fields`` are changed in the approval."""
        item = self.item(name, at)
        contents = {
            file.path: self.store.blob(self.store.entry(at, f"{paths.item_folder(name)}/{file.path}").oid)  # type: ignore[union-attr]
            for file in item.payload
        }
        approval: Approval = approval_of(item, entry, contents).model_copy(update=fields)
        return {
            paths.item(name): item.model_copy(update={"state": "approved"}),
            paths.approval(name): approval,
        }

    def put_up(
        self, name: str = ITEM, state: str = "awaiting_approval", text: str = "Hello\n", **fields: Any
    ) -> str:
        """Bring an item to where it waits, with its approval branch; return its name."""
        self.put(name, text, **fields)
        return self.again(name, state)

    def again(self, name: str = ITEM, state: str = "awaiting_approval", **fields: Any) -> str:
        """Let an item wait anew, with a new approval branch; return its name."""
        self.wait(name, state, **fields)
        self.flip(name)
        self.commit({}, f"put up {name}")
        return name

    def merge(
        self, who: str, *names: str, sign: bool = True, options: Sequence[str] = (), check: bool = True
    ) -> Oid:
        """Merge approval branches with git, signed; return the commit that the branch is at then."""
        self.checkout()
        refs = [name if "/" in name else f"gitbus/approve/{name}" for name in names or (ITEM,)]
        self.git(
            who,
            "merge",
            "-q",
            "--no-ff",
            *(["-S"] if sign else []),
            "--no-edit",
            *options,
            *refs,
            check=check,
        )
        return self.tip

    def approve(self, who: str, *names: str) -> Oid:
        """Merge as ``gitbus approve`` does: with trailers that name the items."""
        trailers = "".join(f"Gitbus-Item: {name}\n" for name in names or (ITEM,))
        message = f"approve {len(names) or 1}\n\nGitbus-Verb: approve\n{trailers}"
        return self.merge(who, *names, options=["-m", message])

    def review(
        self, who: str, name: str = ITEM, verdict: str = "ok", key: str | None = "", **fields: Any
    ) -> Oid:
        """Commit a person's review, signed with the person's key (or another's, or nobody's)."""
        item = self.item(name)
        given = {
            "item": name,
            "revision": item.revision,
            "digest": item.digest,
            "person": who,
            "at": self.now,
        }
        review = Review(**{**given, "verdict": verdict, **fields})
        return self.commit(
            {paths.review(name, who): review},
            f"review {name}: {verdict}",
            by=who,
            key=who if key == "" else key,
        )

    # --- the sender's and a human's word

    def lease(
        self, name: str = ITEM, minutes: int = 5, key: str | None = None, **fields: Any
    ) -> dict[str, str]:
        """Lease an item's present attempt; return the nonces behind the seals."""
        item = self.item(name)
        nonces = make_nonces(f"{name}#{item.attempt}")
        made = self.now + timedelta(minutes=1)
        lease = make_lease(
            item, self.store.line(self.tip, touching=[paths.approval(name)])[0], self.tip, made, nonces
        )
        lease = lease.model_copy(update={"expires_at": made + timedelta(minutes=minutes), **fields})
        sending = item.model_copy(update={"state": "sending", "reason": None})
        self.commit(
            {paths.item(name): sending, paths.lease(name, item.attempt): lease},
            f"lease {name}",
            by="sender",
            key=key,
        )
        return nonces

    def attest(
        self,
        name: str,
        outcome: str,
        nonces: Mapping[str, str],
        *,
        passing: bool = False,
        key: str | None = None,
        **fields: Any,
    ) -> Oid:
        """Commit the receipt of an item's present attempt, and the state that follows."""
        item = self.item(name)
        receipt = self.receipt(name, outcome, nonces.get(outcome), passing=passing, **fields)
        states = {"sent": "sent", "unknown": "stuck", "not_sent": "approved" if passing else "failed"}
        update: dict[str, Any] = {"state": states[outcome]}
        if passing:
            update |= {"attempt": item.attempt + 1, "not_before": self.now, "reason": "450 later"}
        changes = {
            paths.item(name): item.model_copy(update=update),
            paths.receipt(name, item.attempt): receipt,
        }
        return self.commit(changes, f"attest {name}: {outcome}", by="sender", key=key)

    def receipt(self, name: str, outcome: str, nonce: str | None, **fields: Any) -> Receipt:
        """Return a receipt of an item's present attempt."""
        item = self.item(name)
        given: dict[str, Any] = {
            "item": name, "revision": item.revision, "attempt": item.attempt, "digest": item.digest,
            "outcome": outcome, "nonce": nonce, "lease": self.tip, "sender": "test:1",
            "approval": {"commit": self.tip, "people": (), "proof": "signature"},
            "channel": {"id": item.channel, "transport": "maildir"},
            "leased_at": self.now, "finished_at": self.now,
        }  # fmt: skip
        return Receipt.model_validate({**given, **fields})

    def state(self, name: str, state: str, message: str = "", **fields: Any) -> Oid:
        """Commit another state of an item; leaving ``approved`` takes its approval away."""
        update = self.item(name).model_copy(update={"state": state, **fields})
        changes: dict[str, Content] = {paths.item(name): update}
        if state not in ("sending", "stuck", "sent", "approved") and self.store.entry(
            self.tip, paths.approval(name)
        ):
            changes[paths.approval(name)] = None
        return self.commit(changes, message or f"{state} {name}")

    def resolve(
        self, who: str, name: str = ITEM, verdict: str = "not_sent", key: str | None = "", **how: Any
    ) -> Oid:
        """Commit a person's word on a stuck item, signed."""
        return self.commit(self.resolution(who, name, verdict), f"resolve {name}: {verdict}", by=who,
                           key=who if key == "" else key, **how)  # fmt: skip

    def resolution(self, who: str, name: str, verdict: str) -> dict[str, Content]:
        """Return the files that a resolution writes."""
        item = self.item(name)
        said = Resolution(
            item=name, attempt=item.attempt, verdict=verdict, evidence="the log", person=who, at=self.now
        )
        expires = self.now + self.bus.approval.expires
        waiting = {
            "state": "awaiting_approval",
            "attempt": item.attempt + 1,
            "expires_at": expires,
            "reason": None,
        }
        after = item.model_copy(
            update=waiting if verdict == "not_sent" else {"state": "sent", "reason": None}
        )
        changes: dict[str, Content] = {paths.item(name): after, paths.resolution(name, item.attempt): said}
        if verdict == "not_sent":
            changes[paths.approval(name)] = None
        return changes

    # --- bus.yaml

    def set_bus(self, who: str = "ada", *, name: bool = False, key: str | None = "", **policy: Any) -> Oid:
        """Commit another bus.yaml: signed by a person, by name where that is asked for."""
        self.bus = changed_bus(self.bus, **policy)
        return self.write_bus(self.bus, who, name=name, key=key)

    def write_bus(
        self, content: Content, who: str = "ada", *, name: bool = False, key: str | None = "", **how: Any
    ) -> Oid:
        """Commit some content as bus.yaml."""
        message = f"config\n\nGitbus-Bus: {self.blob(content)}\n" if name else "config"
        return self.commit({paths.BUS: content}, message, by=who, key=who if key == "" else key, **how)

    def ratify(self, who: str = "ada") -> Oid:
        """Affirm the bus.yaml of the tip by name, changing nothing."""
        entry = self.store.entry(self.tip, paths.BUS)
        assert entry is not None
        return self.commit({}, f"ratify\n\nGitbus-Bus: {entry.oid}\n", by=who, key=who)

    # --- proofs

    def effective(self, tip: Oid | None = None, known: Effective | None = None) -> Effective:
        """Return the effective Bus, seen with fresh eyes."""
        return effective(self.fresh(), tip or self.tip, self.root, known=known)

    def prove(
        self, name: str = ITEM, tip: Oid | None = None, known: Effective | None = None, **how: Any
    ) -> Proof:
        """Prove an item's approval, from a fresh clone or from one with memory."""
        given: dict[str, Any] = {"now": self.now, "branch": self.branch, **how}
        return prove_approval(self.fresh(), tip or self.tip, name, root=self.root, bus=known, **given)

    def refused(self, name: str = ITEM, **how: Any) -> set[str]:
        """Return the rules by which an item's approval is refused."""
        return {one.rule for one in self.prove(name, **how).missing}

    def leases(self, name: str = ITEM) -> tuple[FoundLease, ...]:
        """Return the item's leases."""
        return leases_of(self.fresh(), self.tip, name, root=self.root, branch=self.branch, now=self.now)

    def line(self, tip: Oid | None = None, **memory: Any) -> set[str]:
        """Return the rules that the line breaks."""
        history, at = self.fresh(), tip or self.tip
        found = effective(history, at, self.root)
        return {one.rule for one in line_findings(history, at, self.root, found, **memory)}


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[BusRepo]:
    """Return a bus whose branch is ``main``, with sending on."""
    made = BusRepo(tmp_path)
    yield made
    made.close()


@pytest.fixture
def make_repo(tmp_path: Path) -> Iterator[Callable[..., BusRepo]]:
    """Return :class:`BusRepo` without its first argument."""
    made: list[BusRepo] = []

    def make(**how: Any) -> BusRepo:
        made.append(BusRepo(tmp_path / str(len(made)), **how))
        return made[-1]

    yield make
    for one in made:
        one.close()


__all__ = [
    "FILE",
    "ITEM",
    "PEOPLE",
    "START",
    "BusRepo",
    "bus",
    "changed_bus",
    "key",
    "make_bus",
    "make_item",
    "make_repo",
    "public",
    "sign",
]
