"""What a range of commits changes: counts, and files with their patches.

Example: ``numbers(repo, base, head).files`` is how many files a pull request changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.github.bare import GitFailed
from tests.github.state import Repo

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}


@dataclass(frozen=True)
class Numbers:
    """How much a range changes."""

    additions: int
    deletions: int
    files: int


@dataclass(frozen=True)
class FileChange:
    """One changed file."""

    status: str
    path: str
    before: str | None
    blob: str
    additions: int
    deletions: int


def numbers(repo: Repo, base: str, head: str) -> Numbers:
    """Return how much a head changes against where it left a base."""
    found = changed(repo, repo.git.merge_base(base, head) or EMPTY_TREE, head)
    return Numbers(sum(one.additions for one in found), sum(one.deletions for one in found), len(found))


def changed(repo: Repo, one: str, other: str) -> list[FileChange]:
    """Return the files that differ between two commits or trees, renames detected."""
    found: list[FileChange] = repo.git.once("changed", one, other, make=lambda: _changed(repo, one, other))
    return found


def _changed(repo: Repo, one: str, other: str) -> list[FileChange]:
    raw = repo.git.run("diff-tree", "-r", "-M", "-z", "--raw", "--numstat", one, other).split("\0")
    entries: list[tuple[str, str, str | None, str]] = []
    counts: dict[str, tuple[int, int]] = {}
    rest = iter(raw)
    for part in rest:
        if part.startswith(":"):
            _, _, old, new, status = part.split(" ")
            blob = old if status == "D" else new
            path, before = next(rest), None
            if status[0] in "RC":
                before, path = path, next(rest)
            entries.append((status[0], path, before, blob))
        elif part:
            added, removed, path = part.split("\t")
            if not path:
                next(rest)
                path = next(rest)
            counts[path] = (_count(added), _count(removed))
    return [
        FileChange(_STATUS[kind], path, before, blob, *counts.get(path, (0, 0)))
        for kind, path, before, blob in entries
    ]


def _count(text: str) -> int:
    return 0 if text == "-" else int(text)


def patches(repo: Repo, one: str, other: str) -> dict[str, str]:
    """Return the hunks of each text file that differs between two commits or trees."""
    found: dict[str, str] = repo.git.once("patches", one, other, make=lambda: _patches(repo, one, other))
    return found


def _patches(repo: Repo, one: str, other: str) -> dict[str, str]:
    try:
        text = repo.git.run("-c", "core.quotePath=false", "diff-tree", "-r", "-M", "-p", one, other)
    except GitFailed:
        return {}
    found = {}
    for part in ("\n" + text).split("\ndiff --git ")[1:]:
        head, mark, hunks = part.partition("\n@@ ")
        if mark:
            new = next((x[6:] for x in head.splitlines() if x.startswith("+++ b/")), None)
            old = next((x[6:] for x in head.splitlines() if x.startswith("--- a/")), None)
            found[(new or old or "").rstrip("\t")] = "@@ " + hunks
    return found


def shown(repo: Repo, place: tuple[str, str], span: tuple[str, str], change: FileChange) -> dict[str, Any]:
    """Return a changed file as the API shows it.

    Args:
        repo: the repository.
        place: the addresses of the API and of the pages.
        span: the two commits that it differs between.
        change: the file.
    """
    (base_url, web), sha = place, span[1]
    path = quote(change.path)
    found = {
        "sha": change.blob,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "blob_url": f"{web}/{repo.full_name}/blob/{sha}/{path}",
        "raw_url": f"{web}/{repo.full_name}/raw/{sha}/{path}",
        "contents_url": f"{base_url}/repos/{repo.full_name}/contents/{path}?ref={sha}",
    }
    if (patch := patches(repo, *span).get(change.path)) is not None:
        found["patch"] = patch
    if change.before is not None:
        found["previous_filename"] = change.before
    return found
