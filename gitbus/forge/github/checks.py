"""The check of what is put up: a summary for the job's page, and a status on the commit of each branch.

A pull request that GITHUB_TOKEN opened starts no workflow, so its check is made by the conductor's
workflow and told by a commit status, once for each commit and outcome.

Example: ``report(client, proposals(store, refs, main), "https://…/actions/runs/7")``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gitbus.forge.github.client import Client
from gitbus.forge.github.markdown import block, code
from gitbus.proposed import Proposal

CONTEXT = "gitbus/check"
"""By this name the status is known; a ruleset may require it."""


def summary(found: Iterable[Proposal]) -> str:
    """Return what merging would do as Markdown; nothing that a worker wrote is more than text in it."""
    parts = [part for one in found for part in _told(one)]
    return "\n\n".join(parts or ["Merging this sends nothing."]) + "\n"


def _told(one: Proposal) -> Iterator[str]:
    for problem in one.problems:
        yield f"- {code(problem.path)}, line {problem.line}: {code(problem.message)}"
    for item, text in one.approvals.items():
        yield f"### Merging approves {code(item)}"
        yield "This is what would be sent, once sending is on:"
        yield block(text, "yaml", most=30_000)


def report(client: Client, found: Iterable[Proposal], page: str | None) -> int:
    """Set the status of each branch's commit where it is not set yet; return how many were set.

    Args:
        client: calls of a token that may write commit statuses.
        found: what was checked.
        page: the address of the job's page.

    Raises:
        ForgeRefused: the token may not.
        Unreachable: GitHub did not answer.
    """
    return sum(_set(client, one, page) for one in found)


def _set(client: Client, one: Proposal, page: str | None) -> bool:
    state = "failure" if one.problems else "success"
    repo = client.place.path
    known = client.get(f"{repo}/commits/{one.commit}/status")["statuses"]
    if any(status["context"] == CONTEXT and status["state"] == state for status in known):
        return False
    words = f"{len(one.problems)} problems" if one.problems else "every record is right"
    body = {"state": state, "context": CONTEXT, "description": words}
    client.send("POST", f"{repo}/statuses/{one.commit}", body | ({"target_url": page} if page else {}))
    return True
