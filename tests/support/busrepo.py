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

import atexit
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gitbus import codec, ids, paths
from gitbus.approvals import approval_of
from gitbus.history import FILE, TREE, Entry, Oid
from gitbus.hub.objects import render_tree
from gitbus.hub.run import Git
from gitbus.hub.store import GitStore
from gitbus.proof.approval import prove_approval
from gitbus.proof.bus import Effective, effective
from gitbus.proof.leases import FoundLease, leases_of
from gitbus.proof.line import line_findings
from gitbus.proof.values import Proof
from gitbus.records import (
    Approval,
    Bus,
    Item,
    Lease,
    Message,
    PayloadFile,
    Receipt,
    Record,
    Resolution,
    Review,
)
from gitbus.records.item import Score, Seals, Source, digest

START = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)
ITEM = "a.mail.item"
PEOPLE: Mapping[str, tuple[str, ...]] = {
    "ada": ("approver", "reviewer"),
    "bob": ("approver", "reviewer"),
    "rita": ("reviewer",),
    "oscar": ("operator",),
}
Content = bytes | str | Record | Entry | None


@functools.cache
def _session() -> Path:
    """Return the folder of this session's keys and template; it goes with the process."""
    folder = tempfile.mkdtemp(prefix="gitbus-busrepo-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@functools.cache
def key(name: str) -> Path:
    """Return the path of a private ed25519 key; the public one stands beside it."""
    path = _session() / f"key-{name}"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@test", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def public(name: str) -> str:
    """Return a key's public line."""
    return key(name).with_suffix(".pub").read_text("utf-8").strip()


@functools.cache
def _template() -> Path:
    path = _session() / "template"
    subprocess.run(["git", "init", "-q", "--template=", "-b", "main", str(path)], check=True)
    config = path / ".git" / "config"
    config.write_text(config.read_text() + "[receive]\n\tdenyCurrentBranch = ignore\n[gc]\n\tauto = 0\n")
    return path


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


class BusRepo:
    """One repository with a bus, which is hub and working clone at once.

    ``now`` goes a minute forward with every commit.

    Args:
        folder: where it goes.
        branch: the bus's branch.
        policy: what ``bus.yaml`` says beside its people and the channel ``news``.
    """

    def __init__(self, folder: Path, branch: str = "main", **policy: Any) -> None:
        self.folder = folder / "repo"
        shutil.copytree(_template(), self.folder, symlinks=True)
        self.branch = branch
        self.now = START
        self.bus = make_bus(**policy)
        self._open: list[GitStore] = []
        self.store = self.fresh()
        if branch != "main":
            (self.folder / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
        self.root = self.commit({paths.BUS: self.bus}, "init", on=None)
        self._entries: dict[str, Oid] = {}

    # --- git

    def fresh(self) -> GitStore:
        """Return a view of the repository that remembers nothing."""
        git = Git(self.folder / ".git")
        self._open.append(GitStore(git, git))
        return self._open[-1]

    def close(self) -> None:
        """End the processes that read."""
        for store in self._open:
            store.close()
        self._open = []

    def git(
        self, who: str | None, *arguments: str, at: Path | None = None, check: bool = True, **env: str
    ) -> str:
        """Run git in the working clone (or at another place), as a person with his key; returns what it printed."""
        settings = ["-c", "gpg.format=ssh", "-c", "advice.diverging=false", "-c", "merge.conflictStyle=merge"]
        if who is not None:
            settings += ["-c", f"user.name={who.title()}", "-c", f"user.email={who}@test"]
            settings += ["-c", f"user.signingkey={key(who)}"]
        stamp = self.tick().isoformat()
        done = subprocess.run(
            ["git", "-C", str(at or self.folder), *settings, *arguments],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={
                **os.environ,
                "GIT_AUTHOR_DATE": stamp,
                "GIT_COMMITTER_DATE": stamp,
                "GIT_MERGE_AUTOEDIT": "no",
                **env,
            },
        )
        if check and done.returncode != 0:
            raise AssertionError(f"git {arguments}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def clone(self, who: str) -> Path:
        """Return a person's own clone, set up to sign; it is made at the first call."""
        place = self.folder.parent / f"clone-{who}"
        if not place.exists():
            self.git(
                who, "clone", "-q", "-b", self.branch, str(self.folder), str(place), at=self.folder.parent
            )
            for name, value in (
                ("user.name", who.title()),
                ("user.email", f"{who}@test"),
                ("pull.rebase", "false"),
            ):
                self.git(who, "config", name, value, at=place)
        return place

    def tick(self, **more: float) -> datetime:
        """Let time go on, by a minute unless told otherwise."""
        self.now += timedelta(**(more or {"minutes": 1}))
        return self.now

    @property
    def tip(self) -> Oid:
        """What the bus's branch is at."""
        return self.at(self.branch)

    def at(self, branch: str) -> Oid:
        """Return what a branch is at."""
        return (self.folder / ".git" / "refs" / "heads" / branch).read_text().strip()

    def point(self, branch: str, oid: Oid) -> Oid:
        """Let a branch be at a commit, whatever it was at."""
        path = self.folder / ".git" / "refs" / "heads" / branch
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(oid + "\n")
        return oid

    def checkout(self) -> None:
        """Bring the working tree to where the bus's branch is."""
        self.git(None, "reset", "-q", "--hard", self.branch)

    # --- commits

    def object(self, kind: str, data: bytes) -> Oid:
        """Write an object as git would, but for the fsync."""
        whole = f"{kind} {len(data)}\0".encode() + data
        oid = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        path = self.folder / ".git" / "objects" / oid[:2] / oid[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(whole, 1))
        return oid

    def blob(self, content: Content) -> Oid:
        """Write a blob: a record as it is written canonically, a text in UTF-8."""
        data = codec.write(content) if isinstance(content, Record) else content
        return self.object("blob", data.encode() if isinstance(data, str) else data)  # type: ignore[arg-type]

    def tree(self, base: Oid | None, changes: Mapping[str, Content]) -> Oid:
        """Return a tree: another one's with some paths changed."""
        entries = dict(self.store.tree(base)) if base else {}
        below: dict[str, dict[str, Content]] = {}
        for path, content in changes.items():
            name, _, rest = path.partition("/")
            if rest:
                below.setdefault(name, {})[rest] = content
            elif content is None:
                entries.pop(name, None)
            else:
                entries[name] = content if isinstance(content, Entry) else Entry(FILE, self.blob(content))
        for name, inner in below.items():
            old = entries.pop(name, None)
            oid = self.tree(old.oid if old and old.mode == TREE else None, inner)
            if self.store.tree(oid):
                entries[name] = Entry(TREE, oid)
        return self.object("tree", render_tree(entries))

    def commit(
        self,
        changes: Mapping[str, Content] | None = None,
        message: str = "change",
        *,
        by: str = "conductor",
        key: str | None = None,
        parents: Sequence[Oid] | None = None,
        on: str | None = "",
        author: str | None = None,
        committer: str | None = None,
        when: datetime | None = None,
        tree: Oid | None = None,
    ) -> Oid:
        """Write a commit and move a branch to it.

        Args:
            changes: path to content, made to the first parent's tree.
            message: the whole message.
            by: author and committer.
            key: whose key signs it; nobody's where it is None.
            parents: the parents; the branch's tip where they are left out.
            on: the branch that moves: the bus's for "", none that exists yet for None.
            author: the whole author line, where it is to be another.
            committer: the whole committer line, where it is to be another.
            when: the date of both lines.
            tree: the whole tree, instead of the first parent's.
        """
        branch = on or self.branch
        found = list(parents) if parents is not None else [] if on is None else [self.at(branch)]
        base = tree or (self.store.commit(found[0]).tree if found else None)
        line = ident(by, when or self.tick())
        head = [f"tree {self.tree(base, changes or {})}", *(f"parent {one}" for one in found)]
        head += [f"author {author or line}", f"committer {committer or line}"]
        data = ("\n".join(head) + "\n\n" + message.rstrip("\n") + "\n").encode()
        if key is not None:
            data = with_signature(data, sign(data, key))
        return self.point(branch, self.object("commit", data))

    def detached(
        self, changes: Mapping[str, Content] | None = None, message: str = "aside", **how: Any
    ) -> Oid:
        """Write a commit that no branch of the bus is at."""
        return self.commit(changes, message, on="scratch", **{"parents": [self.tip], **how})

    # --- the way of an item

    def item(self, name: str = ITEM, tip: Oid | None = None) -> Item:
        """Return an item as it stands."""
        return self.read(paths.item(name), Item, tip)

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
        )  # type: ignore[arg-type]
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


# --- records


def make_bus(people: Mapping[str, Sequence[str]] = PEOPLE, **policy: Any) -> Bus:
    """Return a Bus with sending on, these people, each with a key of that name, and the channel ``news``."""
    given: dict[str, Any] = {
        "name": "acme",
        "people": [
            {"id": name, "email": f"{name}@test", "roles": list(roles), "keys": [public(name)]}
            for name, roles in people.items()
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
