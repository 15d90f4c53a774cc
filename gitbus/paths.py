"""Where everything stands on the bus's branch, and the names of the refs.

Example: ``task("a", "write") == "goals/a/tasks/write.yaml"``.
"""

from __future__ import annotations

BUS = "bus.yaml"
HEADS = "refs/heads/"
WORKERS = "refs/heads/gitbus/workers/"
PRESENCE = "refs/heads/gitbus/presence/"
APPROVE = "refs/heads/gitbus/approve/"
DECIDE = "refs/heads/gitbus/decide/"
KEPT = "refs/heads/gitbus/kept/"
PROTECTED = ("bus.yaml", "workers", "outbox", "archive")
"""The paths whose every change off the line is looked at."""


def kept(name: str, tip: str) -> str:
    """Return the branch that keeps what people committed on an approval branch and nobody could take in."""
    return f"{KEPT}{name}.{tip[:12]}"


def goal_folder(goal: str) -> str:
    """Return a goal's folder."""
    return f"goals/{goal}"


def goal(goal: str) -> str:
    """Return a goal's own file."""
    return f"goals/{goal}/goal.yaml"


def report(goal: str) -> str:
    """Return a goal's report."""
    return f"goals/{goal}/report.yaml"


def task(goal: str, task: str) -> str:
    """Return a task's file."""
    return f"goals/{goal}/tasks/{task}.yaml"


def result(goal: str, task: str) -> str:
    """Return the absorbed result of a task."""
    return f"goals/{goal}/results/{task}.yaml"


def artifacts(goal: str, task: str) -> str:
    """Return the folder of a task's artifacts."""
    return f"goals/{goal}/artifacts/{task}"


def refusal(goal: str, task: str, attempt: int) -> str:
    """Return the file of an attempt's refusal."""
    return f"goals/{goal}/refused/{task}.{attempt}.yaml"


def branch_refusal(worker: str) -> str:
    """Return the file that names the tip of a worker's branch that broke the rules."""
    return f"refused/{worker}.yaml"


def worker(worker: str) -> str:
    """Return a declared worker's file."""
    return f"workers/{worker}.yaml"


def item_folder(item: str) -> str:
    """Return an item's folder."""
    return f"outbox/{item}"


def item(item: str) -> str:
    """Return an item's own file."""
    return f"outbox/{item}/item.yaml"


def approval(item: str) -> str:
    """Return the file that says what is approved."""
    return f"outbox/{item}/approval.yaml"


def review(item: str, person: str) -> str:
    """Return a person's review of an item."""
    return f"outbox/{item}/reviews/{person}.yaml"


def lease(item: str, attempt: int) -> str:
    """Return the lease of an attempt."""
    return f"outbox/{item}/lease.{attempt}.yaml"


def receipt(item: str, attempt: int) -> str:
    """Return the receipt of an attempt."""
    return f"outbox/{item}/receipt.{attempt}.yaml"


def resolution(item: str, attempt: int) -> str:
    """Return a human's word on a stuck attempt."""
    return f"outbox/{item}/resolution.{attempt}.yaml"
