"""The stages of what leaves the house, up to the human: persist, score, route; and expire, strand.

All pure. Each item passes every stage in a commit of its own; a batch of items shares the commits.

Example: an item under the threshold goes ``scored`` → ``in_review``, the others to
``awaiting_approval``; both wait for a human until ``expires_at``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from gitbus import graph, ids, paths
from gitbus.board import Board, GoalBoard, ItemBoard
from gitbus.change import Change, Content, Thread, plain
from gitbus.incoming import Inbox
from gitbus.proposals import Proposal, ProposalRefused, proposals
from gitbus.records import Item, Result
from gitbus.records.item import Score, Source, digest
from gitbus.states import BEFORE_SENDING, WAITING

REVISABLE = frozenset({*BEFORE_SENDING, "rejected", "failed", "expired"})


def changes(
    verb: str, items: Iterable[tuple[Item, str]], writes: dict[str, Content] | None = None
) -> list[Change]:
    """Return one commit for some items, each with the words that say what became of it."""
    batch = list(items)
    if not batch:
        return []
    lines = tuple(f"{item.id}: {what}" if what else item.id for item, what in batch)
    return [
        Change(
            verb,
            lines[0] if len(lines) == 1 else f"{len(lines)} items",
            {**{paths.item(item.id): item for item, _ in batch}, **(writes or {})},
            tuple(Thread(item=item.id, attempt=item.attempt) for item, _ in batch),
            lines if len(lines) > 1 else (),
        )
    ]


def _in(board: Board, *states: str) -> Iterator[tuple[ItemBoard, Item]]:
    """Yield the readable items in some states, by id."""
    for _, part in sorted(board.items.items()):
        if part.item is not None and not part.problems and part.item.state in states:
            yield part, part.item


# --- persist


def persist(board: Board, inbox: Inbox, now: datetime) -> list[Change]:  # noqa: ARG001 - a stage
    """Make the items of results that were taken; a new result of an old task makes a new revision."""
    made: list[tuple[Item, str]] = []
    again: list[tuple[Item, str]] = []
    writes: dict[str, dict[str, Content]] = {"persist": {}, "revise": {}}
    for part, proposal, result in _proposed(board):
        old = board.items.get(proposal.id)
        if old is None:
            item = _item(part, proposal, result)
            made.append((item, f"for {proposal.channel}"))
            writes["persist"].update(_files(proposal))
        elif old.item is not None and _is_newer(old, result):
            item = _again(part, old.item, proposal, result, leased=old.item.attempt in old.leases)
            again.append((item, f"revision {item.revision}, a new result"))
            writes["revise"].update({**_cleared(old), **_files(proposal)})
    return changes("persist", made, writes["persist"]) + changes("revise", again, writes["revise"])


def _proposed(board: Board) -> Iterator[tuple[GoalBoard, Proposal, Result]]:
    for _, part in sorted(board.goals.items()):
        if not part.open or part.goal is None or part.problems:
            continue
        sends = {name for name, node in part.goal.tasks.items() if node.item or node.channels}
        if not sends:
            continue
        whole = graph.of(board, part)
        for name, planned in whole.tasks.items():
            result = part.results.get(name)
            if (planned.group or name) not in sends or result is None or whole.state(name) != "done":
                continue
            try:
                found = proposals(whole, planned, result, part.artifacts.get(name, {}), board.bus)
            except ProposalRefused:
                continue  # the bus changed since the result was taken: nothing may go there any more
            for proposal in found:
                yield part, proposal, result


def _is_newer(old: ItemBoard, result: Result) -> bool:
    if old.item is None or old.problems or old.item.state not in REVISABLE:
        return False
    return result.attempt > old.item.source.attempt


def _item(part: GoalBoard, proposal: Proposal, result: Result) -> Item:
    return Item(
        id=proposal.id,
        state="persisted",
        digest=digest(proposal.channel, proposal.message, proposal.payload, proposal.send_at),
        channel=proposal.channel,
        message=proposal.message,
        payload=proposal.payload,
        source=Source(
            goal=part.id,
            task=result.task,
            attempt=result.attempt,
            worker=result.worker,
            commit=part.sources.get(result.task, "0" * 40),
        ),
        confidence=proposal.confidence,
        send_at=proposal.send_at,
        together=proposal.together,
    )


def _again(part: GoalBoard, old: Item, proposal: Proposal, result: Result, *, leased: bool) -> Item:
    fresh = _item(part, proposal, result)
    return fresh.model_copy(update={"revision": old.revision + 1, "attempt": old.attempt + leased})


def _files(proposal: Proposal) -> dict[str, Content]:
    return {f"{paths.item_folder(proposal.id)}/{path}": content for path, content in proposal.files.items()}


def _cleared(old: ItemBoard) -> dict[str, Content]:
    """Return the removal of an item's payload and of the approval that was about it."""
    gone: dict[str, Content] = {f"{paths.item_folder(old.id)}/{path}": None for path in old.files}
    if old.approval is not None:
        gone[paths.approval(old.id)] = None
    return gone


# --- score


def score(board: Board, inbox: Inbox, now: datetime) -> list[Change]:  # noqa: ARG001 - a stage
    """Give every persisted item its confidence: the lowest of all scores."""
    done = []
    for _, item in _in(board, "persisted"):
        scores = tuple(_scores(board, item))
        if scores:
            lowest = min(one.value for one in scores)
            scored = item.model_copy(update={"state": "scored", "scores": scores, "confidence": lowest})
            done.append((scored, f"{lowest:g}"))
    return changes("score", done)


def _scores(board: Board, item: Item) -> Iterator[Score]:
    """Yield the scores of an item; nothing at all while a scorer's answer is still awaited."""
    given = item.confidence
    found = [
        Score(by="producer", value=given or 0.0, note=None if given is not None else "no confidence given")
    ]
    for scorer in board.bus.score.scorers:
        value = SCORERS[scorer](board, item) if scorer in SCORERS else _answered(board, item, scorer)
        if value is None:
            return
        found.append(value)
    yield from found


def _evidence(board: Board, item: Item) -> Score:
    """Score by the share of claims that name evidence; no claims at all score nothing."""
    part = board.goals.get(item.source.goal)
    result = part.results.get(item.source.task) if part else None
    claims = result.claims if result else ()
    if not claims:
        return Score(by="evidence", value=0.0, note="no claims")
    backed = sum(bool(claim.evidence) for claim in claims)
    return Score(
        by="evidence", value=round(backed / len(claims), 4), note=f"{backed} of {len(claims)} claims"
    )


SCORERS: dict[str, Callable[[Board, Item], Score]] = {"evidence": _evidence}
"""The scorers that need no worker."""


def _answered(board: Board, item: Item, scorer: str) -> Score | None:
    """Return a worker's score; None while it is awaited."""
    part = board.goals.get(item.source.goal)
    name = graph.scoring_task(item, scorer)
    task = part.tasks.get(name) if part else None
    if part is None or task is None or task.state in ("ready", "assigned"):
        return None
    result = part.results.get(name)
    value = result.outputs.get("score") if result and task.state == "done" else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        return Score(by=scorer, value=0.0, note=plain(f"no score: {task.reason or task.state}"))
    return Score(by=scorer, value=float(value))


# --- route


def route(board: Board, inbox: Inbox, now: datetime) -> list[Change]:  # noqa: ARG001 - a stage
    """Put every scored item before a human."""
    done = []
    for _, item in _in(board, "scored"):
        waiting = wait(board, item, now)
        done.append((waiting, waiting.state))
    return changes("route", done)


def wait(board: Board, item: Item, now: datetime, reason: str | None = None) -> Item:
    """Return the item as it waits for an approval from now on: in review where its confidence is low."""
    low = (item.confidence or 0.0) < board.bus.score.threshold
    return item.model_copy(
        update={
            "state": "in_review" if low else "awaiting_approval",
            "expires_at": now + board.bus.approval.expires,
            "not_before": None,
            "reason": reason,
        }
    )


# --- expire, strand, demote


def expire(board: Board, inbox: Inbox, now: datetime) -> list[Change]:  # noqa: ARG001 - a stage
    """Expire what waited too long, approved or not."""
    late = [
        (item.model_copy(update={"state": "expired", "reason": "nobody approved and sent it in time"}), "")
        for _, item in _in(board, *WAITING, "approved")
        if item.expires_at is not None and now >= item.expires_at
    ]
    return changes("expire", late, _without_approval(board, late))


def strand(board: Board, inbox: Inbox, now: datetime) -> list[Change]:  # noqa: ARG001 - a stage
    """Leave to a human what was being sent when its lease expired: nobody knows what happened."""
    stuck = []
    for part, item in _in(board, "sending"):
        lease = part.leases.get(item.attempt)
        if lease is None or now >= lease.expires_at:
            why = "the lease expired without a receipt" if lease else "there is no lease"
            stuck.append((item.model_copy(update={"state": "stuck", "reason": why}), why))
    return changes("strand", stuck)


def strand_broken(board: Board, unclosed: Iterable[tuple[str, str, str]]) -> list[Change]:
    """Strand items whose leases say that somebody broke the rules.

    Args:
        board: the board.
        unclosed: (item, state to go to: ``stuck`` or ``sent``, why).
    """
    found = []
    for name, state, why in unclosed:
        part = board.items.get(name)
        if part and part.item and part.item.state != state:
            found.append((part.item.model_copy(update={"state": state, "reason": plain(why)}), plain(why)))
    return changes("strand", found)


def demote(board: Board, disproved: Iterable[tuple[str, str]], now: datetime) -> list[Change]:
    """Take back approvals that are none.

    Args:
        board: the board.
        disproved: (item, why), of approved items.
        now: the time.
    """
    back = []
    for name, why in disproved:
        part = board.items.get(name)
        if part and part.item and part.item.state == "approved":
            back.append((wait(board, part.item, now, plain(why, 300)), plain(why)))
    return changes("demote", back, _without_approval(board, back))


def revise(board: Board, edits: Iterable[tuple[str, str, dict[str, Content]]]) -> list[Change]:
    """Take edited payloads in as new revisions.

    Args:
        board: the board.
        edits: (item, who, payload path below the item's folder → bytes).
    """
    done: list[tuple[Item, str]] = []
    writes: dict[str, Content] = {}
    for name, who, files in edits:
        part = board.items.get(name)
        if part is None or part.item is None or part.item.state not in REVISABLE:
            continue
        if not files or not set(files) <= {file.path for file in part.item.payload}:
            continue
        done.append((revised(part, files), f"revision {part.item.revision + 1}, edited by {plain(who)}"))
        writes.update({f"{paths.item_folder(name)}/{path}": content for path, content in files.items()})
        if part.approval is not None:
            writes[paths.approval(name)] = None
    return changes("revise", done, writes)


def revised(part: ItemBoard, files: dict[str, Content]) -> Item:
    """Return an item with another payload, to be scored and put up anew."""
    item = part.item
    if item is None:
        raise ValueError(f"{part.id} has no item")
    payload = tuple(
        file.model_copy(update={"sha256": ids.sha256(content), "bytes": len(content)})
        if isinstance(content := files.get(file.path), bytes)
        else file
        for file in item.payload
    )
    return item.model_copy(
        update={
            "state": "persisted",
            "revision": item.revision + 1,
            "attempt": item.attempt + (item.attempt in part.leases),
            "payload": payload,
            "digest": digest(item.channel, item.message, payload, item.send_at),
            "expires_at": None,
            "not_before": None,
            "reason": None,
            "confidence": next((one.value for one in item.scores if one.by == "producer"), item.confidence),
            "scores": (),
        }
    )


def _without_approval(board: Board, items: Iterable[tuple[Item, str]]) -> dict[str, Content]:
    gone: dict[str, Content] = {}
    for item, _ in items:
        if board.items[item.id].approval is not None:
            gone[paths.approval(item.id)] = None
    return gone
