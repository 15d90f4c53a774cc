"""What people do with ``bus.yaml``: decide on it, propose a change, ratify an edit.

Example: ``bus.set_config("sending.enabled", True)``.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from gitbus import codec, paths, records
from gitbus.board import Board
from gitbus.bus.core import Done, OpenBus
from gitbus.change import Change, plain
from gitbus.errors import Invalid, Refused
from gitbus.flow import people


class Config(OpenBus):
    """The ``bus.yaml`` of a bus, and what else is decided on as a whole."""

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


def _shown(value: Any) -> str:
    """Return a value as a person would write it on the command line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
