"""The Python API: a bus as one clone sees it, with everything that the command line does.

Example::

    from gitbus import Bus

    bus = Bus.open("acme")
    bus.add_goal(Path("goal.yaml").read_bytes())
    bus.conduct()
    print(bus.board().goals["release"].state)
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from gitbus import approving, codec, paths, records
from gitbus.board import Board, ItemBoard
from gitbus.change import Change, plain
from gitbus.clock import utc_now
from gitbus.conductor import Conductor, archived
from gitbus.errors import HubMoved, Invalid, Refused, Unreachable
from gitbus.flow import people
from gitbus.flow.items import revise
from gitbus.forge.base import Forge, PlainForge
from gitbus.forge.opening import OnDemand, open_forge
from gitbus.goalcheck import check
from gitbus.history import TREE, Entry, Oid
from gitbus.hub import Hub, RefMove, hub_url, local_state, open_hub
from gitbus.pins import pin_root, pinned_root, show_digest, shown_digests
from gitbus.proof.bus import Effective
from gitbus.reading import Reader
from gitbus.records import Goal, Person
from gitbus.runner.base import Runner
from gitbus.sender import Sender
from gitbus.version import refuse_old
from gitbus.worker import Offer, WorkerActor
from gitbus.writing import Writer

if TYPE_CHECKING:
    from gitbus.auditing import Audited, Window
    from gitbus.documents import Status

TRIES = 30


@dataclass(frozen=True, slots=True)
class Done:
    """A change that landed: its commit, its subject, and whether the user's key signed it."""

    commit: Oid
    subject: str
    signed: bool = False


class Bus:
    """One bus, from one clone.

    Args:
        folder: somewhere in the clone.
        hub: the shared repository.
        state: the clone's local state.
        root: the commit that began the bus.
        now: what time it is.
        environment: where a forge's token and the channels' secrets are; the process's unless given.
    """

    def __init__(
        self,
        folder: Path,
        hub: Hub,
        state: Path,
        root: Oid,
        now: Callable[[], datetime] = utc_now,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.hub = hub
        self.state = state
        self.root = root
        self.now = now
        self.environment = os.environ if environment is None else environment
        self._forge: Forge | None = None
        self.proof = OnDemand(lambda: self.forge)
        """What knows who merged, asked only where no signature tells."""
        self.reader = Reader(hub.store, root, self.proof)

    @classmethod
    def open(
        cls,
        folder: str | Path = ".",
        *,
        root: Oid | None = None,
        now: Callable[[], datetime] = utc_now,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Open the bus of the clone that a folder is in.

        Args:
            folder: somewhere in the clone.
            root: the commit that began the bus, where the caller knows it; else ``GITBUS_ROOT``,
                else what the clone has pinned, else the beginning of the branch, which is pinned.
            now: what time it is.
            environment: where a forge's token and the channels' secrets are; the process's unless given.

        Raises:
            NoBus: there is none here.
            Unreachable: its hub cannot be reached.
        """
        where = Path(folder)
        hub = open_hub(where)
        state = local_state(where)
        known = root or os.environ.get("GITBUS_ROOT") or pinned_root(state)
        if known is None:
            known = hub.store.line(hub.look()[hub.main])[-1]
            pin_root(state, known)
        return cls(where, hub, state, known, now, environment)

    def __enter__(self) -> Self:
        """Return the bus."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what child processes there are."""
        self.close()

    def close(self) -> None:
        """End what child processes and connections there are."""
        if self._forge is not None:
            self._forge.close()
        self.hub.close()

    # --- looking

    @property
    def forge(self) -> Forge:
        """The forge that the hub is on, opened when it is first needed.

        Raises:
            Unreachable: it is GitHub, and there is no token for it (rule ``no-token``).
        """
        if self._forge is None:
            tip = self.hub.look()[self.hub.main]
            bus = Reader(self.hub.store, self.root).effective(tip).bus
            url = hub_url(self.folder)
            self._forge = open_forge(url, bus, self.branch, self.hub.store, self.environment, self.state)
        return self._forge

    @property
    def branch(self) -> str:
        """The bus's branch, by its short name."""
        return self.hub.main.removeprefix(paths.HEADS)

    def refs(self) -> Mapping[str, Oid]:
        """Look at the hub and return its refs."""
        return self.hub.look()

    def board(self) -> Board:
        """Look at the hub and return the board as it is now."""
        return self.reader.board(self.hub.look()[self.hub.main])

    def item(self, item: str) -> ItemBoard | None:
        """Return an item as it stands now, in the archive too; None where there never was one."""
        board = self.board()
        there = self.reader.archived(board.commit, item) if item not in board.items else None
        return there[1] if there is not None else board.items.get(item)

    def whole_board(self) -> Board:
        """Return the board with settled goals loaded as well."""
        board = self.board()
        return self.reader.opened(board, [name for name, part in board.goals.items() if not part.open])

    def status(self, goal: str | None = None) -> Status:
        """Return what is going on, of one goal or all.

        Raises:
            Refused: there is no such goal.
        """
        from gitbus.overview import overview

        return overview(self, goal)

    def effective(self) -> Effective:
        """Return the effective Bus."""
        return self.reader.effective(self.hub.look()[self.hub.main])

    def person(self) -> Person:
        """Return the person that this clone's user is, by the email address of his git.

        Raises:
            Refused: ``bus.yaml`` knows nobody of this address (rule ``not-a-person``).
        """
        email = self.hub.store.identity().email
        bus = self.effective().bus
        found = next((one for one in bus.people if one.email.lower() == email.lower()), None)
        if found is None:
            known = ", ".join(one.email for one in bus.people)
            raise Refused(
                f"bus.yaml knows nobody of your address {plain(email)}",
                rule="not-a-person",
                remedy=f"set git's user.email to one of {known}, or have yourself added: gitbus person add",
            )
        return found

    # --- changing

    def commit(
        self,
        decide: Callable[[Board], Change],
        *,
        sign: bool = False,
    ) -> Done:
        """Make one change as the user, again on each newer tip until it lands.

        Args:
            decide: returns the change on a board; raises what refuses it.
            sign: sign it with the user's key.

        Raises:
            HubMoved: others were faster too often.
        """
        writer = Writer(self.hub.store, None, self.reader.remember)
        for attempt in range(TRIES):
            tip = self.hub.look()[self.hub.main]
            board = self.reader.board(tip)
            refuse_old(board.bus)
            change = decide(board)
            made = writer.commits(tip, [change], self.now(), sign=sign)[0]
            if self.hub.move([RefMove(self.hub.main, tip, made)]).moved(self.hub.main):
                return Done(made, f"{change.verb} {change.subject}")
            time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 6)))  # noqa: S311 - jitter
        raise HubMoved("the bus's branch moved each time", rule="hub-moved", remedy="try again")

    # --- goals

    def add_goal(
        self, text: bytes, inputs: Mapping[str, Any] | None = None, *, name: str = "goal.yaml"
    ) -> Done:
        """Add a goal as its author wrote it.

        Args:
            text: the goal's YAML.
            inputs: values for its ``inputs``.
            name: where the text came from, for errors.

        Raises:
            Invalid: it cannot be added; the first thing wrong, with its place.
        """
        text = self._with_inputs(text, inputs or {}, name)

        def decide(board: Board) -> Change:
            return people.add_goal(self.checked_goal(text, board, name), text)

        return self.commit(decide)

    def checked_goal(self, text: bytes, board: Board, name: str = "goal.yaml") -> Goal:
        """Return the goal that a text holds, if it may be added.

        Raises:
            Invalid: it may not.
        """
        loaded = codec.load(text, path=name, limit=board.bus.limits.record)
        found = codec.problems(loaded, Goal)
        if isinstance(found, list):
            raise found[0]
        taken = {*board.goals, *self._archived(board)}
        for issue in check(found, board.bus, taken):
            line, column = loaded.place(issue.place)
            raise Invalid(
                issue.message,
                rule=issue.rule,
                path=name,
                line=line,
                column=column,
                remedy=issue.remedy or None,
            )
        return found

    def _archived(self, board: Board) -> set[str]:
        archive = self._inner(self.hub.store.entry(board.commit, "archive"))
        months = [month for year in archive.values() for month in self._inner(year).values()]
        return {goal for month in months for goal in self._inner(self._inner(month).get("goals"))}

    def _inner(self, entry: Entry | None) -> Mapping[str, Entry]:
        """Return what a folder holds; nothing where there is no folder."""
        return self.hub.store.tree(entry.oid) if entry is not None and entry.mode == TREE else {}

    @staticmethod
    def _with_inputs(text: bytes, inputs: Mapping[str, Any], name: str) -> bytes:
        for key, value in inputs.items():
            loaded = codec.load(text, path=name).data
            if key not in (loaded.get("inputs") or {}):
                known = ", ".join(loaded.get("inputs") or {}) or "none"
                raise Refused(
                    f"the goal has no input {plain(key)}", rule="no-such-input", remedy=f"it has: {known}"
                )
            text = codec.edit(text.decode("utf-8"), ("inputs", key), value).encode("utf-8")
        return text

    def cancel_goal(self, goal: str, reason: str) -> Done:
        """Cancel a goal; what runs is abandoned."""

        def decide(board: Board) -> Change:
            people.goal_of(board, goal)
            entry = self.hub.store.entry(board.commit, paths.goal(goal))
            text = self.hub.store.blob(entry.oid).decode("utf-8") if entry else ""
            return people.cancel_goal(
                board, goal, codec.edit(text, ("cancelled",), reason).encode("utf-8"), reason
            )

        return self.commit(decide)

    def resume(self, goal: str) -> Done:
        """Open what was skipped for want of a worker again."""
        return self.commit(lambda board: people.resume(self._open(board, goal), goal, self.now()))

    def retry_task(self, goal: str, task: str) -> Done:
        """Give a dead task a new budget."""
        return self.commit(lambda board: people.retry_task(self._open(board, goal), goal, task, self.now()))

    def _open(self, board: Board, goal: str) -> Board:
        return self.reader.opened(board, [goal])

    def archive(self, older: timedelta | None = None) -> Done | None:
        """Archive what settled long ago; None where there is nothing to archive.

        Args:
            older: how long ago it settled; the bus's ``archive_after`` unless given.
        """
        tip = self.hub.look()[self.hub.main]
        if not archived(self.hub.store, self.reader.board(tip), tip, (), self.now(), older):
            return None
        return self.commit(
            lambda board: archived(self.hub.store, board, board.commit, (), self.now(), older)[0]
        )

    # --- items: what narrows

    def reject(self, item: str, reason: str) -> Done:
        """Reject an item before it is sent."""
        return self.commit(lambda board: people.reject(board, item, reason))

    def withdraw(self, item: str, reason: str | None = None) -> Done:
        """Take an item back for good."""
        return self.commit(lambda board: people.withdraw(board, item, reason))

    def redo(self, item: str, note: str) -> Done:
        """Give an item's task back to the workers with your words."""
        who = self.person().id
        goal = item.split(".", maxsplit=1)[0]
        return self.commit(lambda board: people.redo(self._open(board, goal), item, who, note, self.now()))

    def retry_item(self, item: str) -> Done:
        """Put a failed or expired item up again."""
        return self.commit(lambda board: people.retry_item(board, item, self.now()))

    # --- items: decisions

    def review(self, item: str, verdict: Literal["ok", "no"], note: str | None = None) -> Done | None:
        """Say yes or no to an item's present revision: signed, or as a review on the forge (None then)."""
        done = approving.review(self, item, verdict, note)
        return Done(*done) if done is not None else None

    def approve(self, items: Sequence[str]) -> Done:
        """Approve items: merge their branches signed with the user's key, or their pull requests.

        Raises:
            Refused: one of them does not wait, its branch is not up, or the forge does not merge it.
            HubMoved: others were faster too often.
        """
        merge, subject, signed = approving.approve(self, items)
        return Done(merge, subject, signed)

    def whole_batches(self, board: Board, items: Sequence[str]) -> tuple[str, ...]:
        """Return the items, with everything that goes up together with one of them."""
        return approving.whole_batches(board, items)

    def flip(self, board: Board, refs: Mapping[str, Oid], item: str) -> Oid:
        """Return the flip that an approver of an item merges.

        Raises:
            Refused: the item does not wait, its branch is not up, or is not its flip.
        """
        return approving.flip(self, board, refs, item)

    def resolve(self, item: str, verdict: Literal["sent", "not_sent"], evidence: str) -> Done:
        """Say what became of a stuck item, signed."""
        who = self.person().id
        return self.commit(
            lambda board: people.resolve(board, item, who, verdict, evidence, self.now()), sign=True
        )

    def revise(self, item: str, files: Mapping[str, bytes]) -> Done:
        """Put an edited payload up for review again, as a new revision."""
        who = self.hub.store.identity()

        def decide(board: Board) -> Change:
            people.check_files(board, item, files)
            changes = revise(board, [(item, f"{who.name} <{who.email}>", dict(files))])
            if not changes:
                raise Refused(
                    f"{item} is {board.items[item].state}; it cannot be revised", rule="wrong-state"
                )
            return changes[0]

        return self.commit(decide)

    def payload(self, item: str) -> dict[str, bytes]:
        """Return the bytes of an item's payload by path below its folder."""
        board = self.board()
        part, record = people.part_of(board, item)
        for problem in part.missing:
            raise Refused(f"{problem.path}: {problem.message}", rule=problem.rule, remedy=problem.remedy)
        return {file.path: self.hub.store.blob(part.files[file.path].oid) for file in record.payload}

    # --- bus.yaml

    def bus_text(self) -> str:
        """Return the effective ``bus.yaml`` as it stands."""
        return self.hub.store.blob(self.effective().blob).decode("utf-8")

    def decide_bus(self, text: str, what: str) -> Done:
        """Make a text the new ``bus.yaml``, as a decision signed with the user's key."""
        data = text.encode("utf-8")
        codec.read(data, records.Bus, path=paths.BUS)
        before = self.effective().blob

        def decide(board: Board) -> Change:
            if self.reader.effective(board.commit).blob != before:
                raise Refused(
                    "bus.yaml was changed by another decision meanwhile",
                    rule="bus-moved",
                    remedy="look at the change again: gitbus config set, or gitbus ratify",
                )
            blob = self.hub.store.write_blob(data)
            return Change("config", plain(what), {paths.BUS: data}, trailers=(("Gitbus-Bus", blob),))

        return self.commit(decide, sign=True)

    def propose_config(self, key: str, value: Any) -> Done:
        """Put a change of ``bus.yaml`` up on ``gitbus/decide/bus``, for an approver to merge."""
        from gitbus.proposing import propose

        data = self.edited_config(key, value).encode("utf-8")
        codec.read(data, records.Bus, path=paths.BUS)
        change = Change("propose", plain(f"{key}={_shown(value)}"), {paths.BUS: data})
        return Done(propose(self, "bus", change), f"{change.verb} {change.subject}")

    def propose_resolution(self, item: str, verdict: Literal["sent", "not_sent"], evidence: str) -> Done:
        """Put a word on a stuck item up on ``gitbus/decide/ITEM``; the approver who merges it is its person."""
        from gitbus.proposing import propose

        approvers = self.effective().bus.with_role("approver")
        who = approvers[0].id if len(approvers) == 1 else self.person().id
        change = people.resolve(self.board(), item, who, verdict, evidence, self.now())
        return Done(propose(self, item, change), f"propose {change.subject}")

    def merge_decision(self, name: str) -> Done:
        """Merge ``gitbus/decide/NAME``, signed with the user's key."""
        from gitbus.proposing import merge_decision

        return Done(*merge_decision(self, name))

    def edited_config(self, key: str, value: Any) -> str:
        """Return ``bus.yaml`` with one value set by its dotted key."""
        where = tuple(int(step) if step.isascii() and step.isdigit() else step for step in key.split("."))
        return codec.edit(self.bus_text(), where, value)

    def set_config(self, key: str, value: Any, what: str | None = None) -> Done:
        """Set one value of ``bus.yaml`` by its dotted key, as a decision.

        Raises:
            Invalid: the file would not be a Bus any more.
        """
        return self.decide_bus(self.edited_config(key, value), what or f"{key}={_shown(value)}")

    def remove_person(self, person: str) -> Done:
        """Remove a person from ``bus.yaml``, as a decision."""
        ids = [one.id for one in self.effective().bus.people]
        if person not in ids:
            raise Refused(f"bus.yaml has nobody called {plain(person)}", rule="no-such-person")
        return self.decide_bus(
            codec.remove(self.bus_text(), ("people", ids.index(person))), f"remove {person}"
        )

    def bus_problems(self) -> list[dict[str, Any]]:
        """Return what is wrong with ``bus.yaml`` as it stands on the branch: unreadable, or not decided on."""
        effective = self.effective()
        text = self.tip_bus_text()
        try:
            codec.read(text.encode("utf-8"), records.Bus, path=paths.BUS)
        except Invalid as error:
            return [{"path": paths.BUS, "line": error.line, "message": error.message}]
        if not effective.pending:
            return []
        last = effective.pending[-1]
        message = f"an edit that nobody decided on (commit {last.commit[:10]}); gitbus ratify"
        if effective.unasked:
            why = effective.unasked[0]
            message = f"{why.message}: {why.remedy}" if why.remedy else why.message
        return [{"path": paths.BUS, "line": last.line, "message": message}]

    def old_records(self) -> list[str]:
        """Return the paths of records that are of another version than this gitbus writes."""
        store = self.hub.store
        tree = store.commit(self.hub.look()[self.hub.main]).tree
        head = b"apiVersion: gitbus/v1\n"
        return [
            delta.path
            for delta in store.diff(None, tree)
            if codec.kind_of_path(delta.path) and delta.new and head not in store.blob(delta.new.oid)
        ]

    def accept_history(self) -> Done:
        """Accept what the line does not hold, as an approver, and put every approved item back to wait."""
        from gitbus.accepting import accept_history

        return accept_history(self)

    def proposed_bus_text(self) -> str:
        """Return ``bus.yaml`` as ``gitbus/decide/bus`` would have it.

        Raises:
            Refused: nothing is proposed.
        """
        from gitbus.proposing import proposed

        entry = proposed(self, "bus").get(paths.BUS)
        return self.hub.store.blob(entry.oid).decode("utf-8", "replace") if entry else ""

    def tip_bus_text(self) -> str:
        """Return ``bus.yaml`` as it stands on the branch, decided or not."""
        entry = self.hub.store.entry(self.hub.look()[self.hub.main], paths.BUS)
        return self.hub.store.blob(entry.oid).decode("utf-8", "replace") if entry else ""

    def ratify(self, *, discard: bool = False, shown: str | None = None) -> Done:
        """Decide on a pending edit of ``bus.yaml``: take it, or put the effective version back.

        Args:
            discard: put the effective version back.
            shown: the text that the person was shown; what stands on the branch unless given.
        """
        text = self.tip_bus_text() if shown is None else shown
        if discard or not text:
            return self.decide_bus(self.bus_text(), "the effective version again")
        return self.decide_bus(text, "ratified")

    # --- actors

    def conductor(self) -> Conductor:
        """Return a conductor on this clone."""
        return Conductor(self.hub, self.root, self.now, self.state, self.shown_forge())

    def shown_forge(self) -> Forge:
        """Return the forge where there is a token for it; else one that does nothing, and says so."""
        try:
            return self.forge
        except Unreachable as error:
            without = PlainForge()
            without.troubles.append(f"{error.message}: no pull request is opened, closed or heard")
            return without

    def conduct(self) -> int:
        """Tick until nothing is left to decide; return how many ticks did something."""
        conductor = self.conductor()
        count = 0
        while conductor.tick():
            count += 1
        return count

    def worker(self, offer: Offer, run: Runner) -> WorkerActor:
        """Return a worker on this clone."""
        return WorkerActor(self.hub, self.root, self.state, offer, run, self.now)

    def sender(self, environment: Mapping[str, str] | None = None) -> Sender:
        """Return the sender of this clone."""
        return Sender(
            self.hub,
            self.root,
            self.state,
            self.environment if environment is None else environment,
            self.now,
            forge=self.proof,
        )

    # --- proving

    def audit(self, window: Window | None = None, *, online: bool = False) -> Audited:
        """Prove the whole history.

        Args:
            window: which findings are reported.
            online: ask the forge again who merged; else what receipts froze is weighed.

        Raises:
            Unreachable: the forge cannot be asked, or does not tell of this branch.
        """
        from gitbus.auditing import audit_bus

        store, tip = self.hub.store, self.hub.look()[self.hub.main]
        proof = self.forge.proof if online else None
        lacking = proof.agrees(store, tip) if proof is not None else None
        if lacking is not None:
            raise Unreachable(lacking.message, rule=lacking.rule, remedy=lacking.remedy or None)
        return audit_bus(
            store, tip, self.root, now=self.now(), branch=self.branch, window=window, forge=proof
        )

    # --- what was shown

    def mark_shown(self, items: Iterable[str]) -> None:
        """Remember that the person at this clone saw these items as they are."""
        board = self.board()
        for item in items:
            _, record = people.part_of(board, item)
            show_digest(self.state, item, record.digest)

    def was_shown(self, item: str) -> bool:
        """Say whether the person at this clone last saw this item as it is."""
        _, record = people.part_of(self.board(), item)
        return shown_digests(self.state).get(item) == record.digest


def _shown(value: Any) -> str:
    """Return a value as a person would write it on the command line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
