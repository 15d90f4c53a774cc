"""What somebody could do who got hold of a token, kind by kind, with what GitHub enforces as it is. Pure.

An approval rests on none of it: it is proved from the merge. What is told here is what a thief could
break, delay or read on the way.

Example: ``[one.can for one in powers(facts, bus, app=7) if one.token == "a worker's push token"]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gitbus.forge.github.setup.enforced import ADMINISTRATOR, KEY, WRITER, Actor, Enforced, Shelter, Shut
from gitbus.forge.github.setup.rendering import SEND
from gitbus.records import Bus

WORKER = "a worker's push token"
APP = "the conductor's App"
TOKEN = "GITHUB_TOKEN"  # noqa: S105 - its name
DEPLOY = "a deploy key that may push"
APPROVER = "an approver's token or browser"
ADMIN = "an administrator's token"


@dataclass(frozen=True)
class Power:
    """What a thief of one kind of token could do, and what stops him."""

    token: str
    can: tuple[str, ...]
    cannot: tuple[str, ...]


def powers(facts: Enforced, bus: Bus, app: int | None) -> Iterator[Power]:
    """Yield what each kind of token is good for in wrong hands.

    Args:
        facts: what GitHub enforces.
        bus: the effective Bus.
        app: the App's number, where conductor and sender act as one.
    """
    yield _worker(facts, bus)
    if app is not None:
        yield _app(facts, bus, Actor("Integration", app))
    yield _workflow(facts)
    if not isinstance(facts.keys, Shut) and any(not key["read_only"] for key in facts.keys):
        yield _key(facts)
    yield _approver(bus)
    yield _admin(facts)


def _worker(facts: Enforced, bus: Bus) -> Power:
    can, cannot = _pushing(facts, WRITER)
    unsigned = [name for name, one in sorted(bus.workers.items()) if not one.keys]
    others = "answer in the name of other workers"
    if unsigned or not bus.workers:
        can.append(f"{others} (but of those whose keys stand in bus.yaml)")
    else:
        cannot.append(f"{others}, whose commits must be signed")
    cannot += ["approve: the merger has to be an approver", "change a workflow file, without that permission"]
    return Power(WORKER, tuple(can), tuple(cannot))


def _app(facts: Enforced, bus: Bus, actor: Actor) -> Power:
    can, cannot = _pushing(facts, actor)
    can.append("open, close and word pull requests, so that people overlook one")
    if bus.sending.keys:
        cannot.append("make an item look sent: leases and receipts are signed (`sending.keys`)")
    else:
        can.append("make an item look sent that was not (`sending.keys` would stop it)")
    cannot += [
        "approve: whoever merges has to be a person",
        "change a workflow file, or read a channel's secret",
    ]
    return Power(APP, tuple(can), tuple(cannot))


def _workflow(facts: Enforced) -> Power:
    """What a job can do with its own token: one of ours, or one that somebody pushed to a branch of his."""
    can, cannot = _pushing(facts, Actor("Integration", 15368))
    wide = not isinstance(facts.workflow, Shut) and facts.workflow["default_workflow_permissions"] == "write"
    if wide:
        can.append("write in every job that does not say otherwise")
    cannot += ["approve: its word counts for nothing", "change a workflow file"]
    send = facts.environments.get(SEND)
    guarded = isinstance(send, Shelter) and send.custom and send.branches == (facts.branch,)
    secrets = "read the channels' secrets, from a workflow on another branch"
    (cannot if guarded else can).append(secrets)
    return Power(TOKEN, tuple(can), tuple(cannot))


def _key(facts: Enforced) -> Power:
    can, cannot = _pushing(facts, KEY)
    can.append("push workflow files, and so read every secret that no environment guards")
    cannot.append("approve, or call the API")
    return Power(DEPLOY, tuple(can), tuple(cannot))


def _approver(bus: Bus) -> Power:
    quorum = bus.approval.quorum
    can = ["merge what waits, and what nobody asked him to; change bus.yaml; turn sending on"]
    cannot = ["send twice, or hide what was sent"]
    if quorum > 1:
        cannot.append(f"approve alone: {quorum} people have to")
    else:
        can[0] += " (`approval.quorum: 2` would need a second person)"
    return Power(APPROVER, tuple(can), tuple(cannot))


def _admin(facts: Enforced) -> Power:
    can, cannot = _pushing(facts, ADMINISTRATOR)
    can.append("take every rule here away, and open the environments to another branch")
    cannot.append("approve, unless he is an approver too")
    return Power(ADMIN, tuple(can), tuple(cannot))


def _pushing(facts: Enforced, actor: Actor) -> tuple[list[str], list[str]]:
    """Return what somebody can and cannot push."""
    can: list[str] = []
    cannot: list[str] = []
    free = (
        (facts.pushes(actor), f"push to {facts.branch}: break goals, make items look other than they are"),
        (
            _opposite(facts.stops("non_fast_forward", actor)),
            f"push {facts.branch} back, so that what was withdrawn or sent seems not to be",
        ),
        (
            _opposite(facts.stops("update", actor, put_up=True)),
            "replace or delete what is put up in gitbus/approve/*, which delays it",
        ),
    )
    for may, what in free:
        if may is None:
            can.append(f"perhaps {what} (this token is not told who may pass the rules)")
        else:
            (can if may else cannot).append(what)
    return can, cannot


def _opposite(answer: bool | None) -> bool | None:
    return None if answer is None else not answer
