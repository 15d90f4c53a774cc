"""Keeping pull requests in step with the bus: opened, titled, labelled, told about, closed.

Rules: what is shown is compared with what shall be, and the next few differences are mended. Nothing
that has an effect is tried again: whether it happened is seen when the list is read the next time.
A comment is found again by its hidden marker, so that it is made once however often this is cut off.

Example: ``Keeping(pulls, texts, store, print).keep(view, shown, hearing)`` says whether it did anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gitbus import paths
from gitbus.board import Board
from gitbus.forge.base import View
from gitbus.forge.github.body import is_current
from gitbus.forge.github.client import ForgeRefused
from gitbus.forge.github.hearing import Hearing
from gitbus.forge.github.markdown import marked
from gitbus.forge.github.pulls import OPEN_LABEL, Ended, Pull, Pulls
from gitbus.forge.github.texts import GitHubTexts
from gitbus.history import History, Oid
from gitbus.records import Person
from gitbus.states import WAITING

STEPS = 20
"""How many pull requests are changed in one go, so that a tick does not take for ever."""

DECIDE = "refs/heads/gitbus/decide/"
OVER = ("sent", "failed", "expired", "rejected", "withdrawn")


class Keeping:
    """Keeps the pull requests of one bus.

    Args:
        pulls: where they are asked and changed.
        texts: what is written there.
        history: the repository, to see what a pull request put up and whether its merge is here.
        trouble: told what could not be done, for people.
    """

    def __init__(
        self,
        pulls: Pulls,
        texts: GitHubTexts,
        history: History,
        trouble: Callable[[str], None],
    ) -> None:
        self.pulls = pulls
        self.client = pulls.client
        self.repo = pulls.repo
        self.texts = texts
        self.history = history
        self.trouble = trouble
        self._ends: dict[int, tuple[str, ...]] = {}  # number → the states in which its items were last seen
        self._asked: set[tuple[str, Oid]] = set()  # decisions that somebody closed as they are

    def keep(self, view: View, shown: Mapping[str, Pull], hearing: Hearing) -> bool:
        """Do the next few things; say whether anything was done."""
        done = 0
        for step in self._steps(view, shown, hearing):
            try:
                done += step()
            except ForgeRefused as error:
                self.trouble(f"{error.message}" + (f" ({error.remedy})" if error.remedy else ""))
            if done >= STEPS:
                break
        return done > 0

    def _steps(self, view: View, shown: Mapping[str, Pull], hearing: Hearing) -> Iterator[Callable[[], bool]]:
        """Yield what there is to do, each a call that says whether it did something."""
        for ref, pull in hearing.reopen.items():
            yield partial(self._reopen, view, ref, pull)
        for ref, commit in hearing.absent.items():
            yield partial(self._open, view, ref, commit)
        for ref in view.refs:
            if ref.startswith(DECIDE) and ref not in shown:
                yield partial(self._propose, view, ref)
        for ref, pull in shown.items():
            yield partial(self._in_step, view, ref, pull)
        for ended in self.pulls.untold():
            yield partial(self._tell_end, view, ended)

    # --- opening

    def _open(self, view: View, ref: str, commit: Oid) -> bool:
        """Open the pull request of an approval branch, with its labels and reviewers."""
        name = ref.removeprefix(paths.APPROVE)
        items = view.branches.get(name)
        if items is None or view.refs.get(ref) != commit:
            return False
        draft = self.texts.pull(view, name, items, commit)
        made = self._create(ref, draft.title, draft.body)
        if made is None:
            return False
        self._label(made["number"], draft.labels)
        self._ask(made, _reviewers(view.board, items))
        return True

    def _propose(self, view: View, ref: str) -> bool:
        """Open the pull request of a decision that waits to be merged, unless somebody closed it as it is."""
        commit = view.refs[ref]
        if (ref, commit) in self._asked:
            return False
        self._asked.add((ref, commit))
        if any(pull.commit == commit for pull in self.pulls.of(ref)):
            return False
        draft = self.texts.decision(view, ref)
        made = self._create(ref, draft.title, draft.body)
        if made is not None:
            self._label(made["number"], draft.labels)
            self._ask(made, view.board.bus.with_role("approver"))
        return made is not None

    def _create(self, ref: str, title: str, body: str) -> Any:
        """Open a pull request; None where there is one already after all."""
        head = ref.removeprefix(paths.HEADS)
        wanted = {"title": title, "body": body, "head": head, "base": self.pulls.branch}
        try:
            return self.client.send("POST", f"{self.repo}/pulls", wanted)
        except ForgeRefused as error:
            if error.status == 422 and "already exists" in error.message:
                return None
            raise

    def _reopen(self, view: View, ref: str, pull: Pull) -> bool:
        """Open a pull request again that lost its branch; a new one where GitHub will not."""
        if view.refs.get(ref) != pull.commit:
            return False
        try:
            self.client.send("PATCH", f"{self.repo}/pulls/{pull.number}", {"state": "open"})
        except ForgeRefused:
            return self._open(view, ref, pull.commit)
        return True

    def _label(self, number: int, labels: Iterable[str]) -> None:
        self.client.send("POST", f"{self.repo}/issues/{number}/labels", {"labels": sorted(labels)})

    def _ask(self, made: Mapping[str, Any], people: Iterable[Person]) -> None:
        """Ask for reviews; who opened it cannot be asked, and who is no collaborator is left out."""
        author = (made.get("user") or {}).get("id")
        logins = [one.github.login for one in people if one.github and one.github.id != author]
        path = f"{self.repo}/pulls/{made['number']}/requested_reviewers"
        if not logins:
            return
        try:
            self.client.send("POST", path, {"reviewers": logins})
        except ForgeRefused as error:
            if error.status != 422:
                raise
            self.trouble(f"nobody could be asked to review #{made['number']}: {error.message}")

    # --- in step

    def _in_step(self, view: View, ref: str, pull: Pull) -> bool:
        """Give an open pull request the title, body and labels that it shall have."""
        name = ref.removeprefix(paths.APPROVE)
        items = view.branches.get(name)
        if not ref.startswith(paths.APPROVE):
            return False
        if ref not in view.refs:
            return self._close(view, pull)
        if items is None or view.refs[ref] != pull.commit:
            return False  # about to be replaced, or GitHub has not seen the push yet, or this clone has not
        draft = self.texts.pull(view, name, items, pull.commit)
        done = draft.title != pull.title or not is_current(pull.body, draft.body)
        if done:
            change = {"title": draft.title, "body": draft.body}
            self.client.send("PATCH", f"{self.repo}/pulls/{pull.number}", change)
        if not draft.labels <= pull.labels:
            self._label(pull.number, draft.labels - pull.labels)
            done = True
        for extra in sorted((pull.labels & {"low-confidence", "stuck"}) - draft.labels):
            done |= self._unlabel(pull.number, extra)
        return done

    def _close(self, view: View, pull: Pull) -> bool:
        """Close a pull request whose branch is gone; GitHub does it itself, now or in a moment."""
        if any(_state(view.board, item) == "approved" for item in self._items(pull.commit)):
            return False  # merged: GitHub says by whom
        self.client.send("PATCH", f"{self.repo}/pulls/{pull.number}", {"state": "closed"})
        return True

    # --- the end of one

    def _tell_end(self, view: View, ended: Ended) -> bool:
        """Say under a closed pull request what became of its items; once all is over, for good."""
        pull = self.pulls.get(ended.number)
        items = self._items(pull.commit) if pull is not None else ()
        if pull is None or not items:
            return self._unlabel(ended.number, OPEN_LABEL)
        if not self._is_over(view, pull):
            return False
        states = tuple(_state(view.board, item) for item in items)
        if self._ends.get(ended.number) == states:
            return False
        parts = [view.board.items[item] for item in items if item in view.board.items]
        done = self._comment(ended.number, self.texts.ends(view, parts, pull))
        done |= self._stuck(ended, states)
        if all(state in OVER or state in WAITING or not state for state in states):
            return self._unlabel(ended.number, OPEN_LABEL) or done
        self._ends[ended.number] = states
        return done

    def _is_over(self, view: View, pull: Pull) -> bool:
        """Say whether the bus has heard how a pull request ended: its merge is here, or its branch is not."""
        if not pull.merged:
            return view.refs.get(pull.ref) != pull.commit
        try:
            return pull.merge is None or self.history.is_ancestor(pull.merge, view.board.commit)
        except KeyError:
            return False

    def _items(self, commit: Oid) -> tuple[str, ...]:
        """Return the items that a commit of an approval branch puts up, as far as it is here."""
        try:
            made = self.history.commit(commit)
            parents = [self.history.commit(parent) for parent in made.parents]
            flips = self.history.diff(parents[0].tree, made.tree, "outbox") if parents else ()
        except KeyError:
            return ()
        if len(parents) == 2:  # brought up to date: the flip is the first parent
            return self._items(made.parents[0])
        return tuple(one.path.split("/")[1] for one in flips if one.path.endswith("/approval.yaml"))

    def _stuck(self, ended: Ended, states: tuple[str, ...]) -> bool:
        if ("stuck" in states) == ("stuck" in ended.labels):
            return False
        if "stuck" in states:
            self._label(ended.number, ("stuck",))
            return True
        return self._unlabel(ended.number, "stuck")

    def _comment(self, number: int, texts: Sequence[str]) -> bool:
        """Make the comments that are not there yet, and write those anew that say something else by now."""
        if not texts:
            return False
        there = {marked(str(one["body"])): one for one in self.pulls.comments(number)}
        done = False
        for text in texts:
            known = there.get(marked(text))
            if known is None:
                self.client.send("POST", f"{self.repo}/issues/{number}/comments", {"body": text})
            elif _plain(known["body"]) != _plain(text):
                self.client.send("PATCH", f"{self.repo}/issues/comments/{known['id']}", {"body": text})
            else:
                continue
            done = True
        return done

    def _unlabel(self, number: int, label: str) -> bool:
        try:
            self.client.send("DELETE", f"{self.repo}/issues/{number}/labels/{label}")
        except ForgeRefused as error:
            if error.rule != "not-found":
                raise
            return False
        return True


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _reviewers(board: Board, items: Iterable[str]) -> Iterable[Person]:
    """Return who is asked: the approvers, and the reviewers where a review is needed."""
    low = any(_state(board, item) == "in_review" for item in items)
    return board.bus.with_role("approver", *(("reviewer",) if low else ()))


def _state(board: Board, item: str) -> str:
    """Return an item's state; nothing where it is not on the board (any more)."""
    part = board.items.get(item)
    return part.state if part is not None else ""
