"""Switches for what goes wrong with GitHub: late consistency, errors, limits.

Rules: a switch works from the moment it is set, so many times, then it is off. What is stale is a copy
of how it was when the switch was set; writes always meet what is true.

Example::

    github.faults.stale_api(3)                       # the next three reads see what is now
    github.faults.after("POST", "/repos/{owner}/{repo}/pulls", status=502)  # done, and answered 502
    github.faults.before("GET", "", status=429, headers={"Retry-After": "60"})
"""

from __future__ import annotations

import copy
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.github.state import Repo, World

_LISTS = frozenset(
    {
        "/repos/{owner}/{repo}/pulls",
        "/repos/{owner}/{repo}/issues",
        "/repos/{owner}/{repo}/commits/{commit_sha}/pulls",
    }
)


@dataclass
class Trouble:
    """What happens to some calls: ``status`` 0 is a connection that ends without an answer."""

    verb: str
    template: str
    status: int
    times: int
    done: bool
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def fits(self, verb: str, template: str) -> bool:
        """Return whether it is about a call."""
        return self.times > 0 and self.verb in ("", verb) and self.template in ("", template)


class Faults:
    """The switches of one server."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._troubles: list[Trouble] = []
        self._api: dict[str, Repo] = {}
        self._api_left = 0
        self._lists_only = False
        self._each = 0
        self._views: dict[str, Path] = {}
        self._git_left = 0
        self.missing = 0
        """How many reads of what was just created still find nothing."""
        self.missing_path = ""
        self.seconds = 0.0
        """How long every answer takes."""

    def clear(self) -> None:
        """Turn all off."""
        self._troubles = []
        self._api_left = self._git_left = self._each = self.missing = self._world.unknown_at_first = 0
        self.seconds = 0.0

    # --- errors

    def before(
        self, verb: str, template: str, *, status: int, times: int = 1, message: str = "", **headers: str
    ) -> None:
        """Answer calls with an error, and do nothing; status 0 ends the connection."""
        self._add(Trouble(verb, template, status, times, False, message, _headers(headers)))

    def after(
        self, verb: str, template: str, *, status: int = 502, times: int = 1, message: str = ""
    ) -> None:
        """Do what calls ask for, and answer with an error all the same; status 0 ends the connection."""
        self._add(Trouble(verb, template, status, times, True, message))

    def secondary_limit(self, *, retry_after: int | None = 60, status: int = 403, times: int = 1) -> None:
        """Answer with the secondary rate limit."""
        headers = {"Retry_After": str(retry_after)} if retry_after is not None else {}
        text = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
        self.before("", "", status=status, times=times, message=text, **headers)

    def primary_limit(self, login: str) -> None:
        """Use up the calls of all tokens of an account."""
        for token in self._world.tokens.values():
            if token.login == login:
                token.used = token.limit

    def missing_after_create(self, times: int = 1) -> None:
        """Answer 404 to the next reads of the thing that is created next."""
        self.missing, self.missing_path = times, ""

    def mergeable_unknown(self, reads: int) -> None:
        """Have so many reads of each new pull request say ``mergeable: null``, as the answer that made it does."""
        self._world.unknown_at_first = reads

    def _add(self, trouble: Trouble) -> None:
        self._troubles.append(trouble)

    def trouble(self, verb: str, template: str, *, done: bool) -> Trouble | None:
        """Return what is to happen to a call, and count it."""
        for one in self._troubles:
            if one.done is done and one.fits(verb, template):
                one.times -= 1
                return one
        return None

    # --- late consistency

    def stale_api(self, reads: int, *, lists_only: bool = False) -> None:
        """Answer the next reads of repositories as things are now.

        Args:
            reads: how many.
            lists_only: only lists of pull requests and issues.
        """
        self._api_left, self._lists_only = reads, lists_only
        self._api = {name: copy.deepcopy(repo) for name, repo in self._world.repos.items()}

    def always_stale(self, reads: int) -> None:
        """Have so many reads after each write see how it was before."""
        self._each = reads

    def writes(self) -> None:
        """Take note that something is about to change."""
        if self._each and not self._api_left:
            self.stale_api(self._each)

    def seen(self, verb: str, template: str, repo: Repo) -> Repo:
        """Return the repository as a call sees it."""
        late = verb == "GET" and self._api_left > 0 and repo.full_name in self._api
        if not late or (self._lists_only and template not in _LISTS):
            return repo
        self._api_left -= 1
        return self._api[repo.full_name]

    def stale_git(self, fetches: int) -> None:
        """Serve the next fetches of each kind with the refs of now; a push sees what is true."""
        self._git_left = fetches
        self._views = {name: self._view(repo) for name, repo in self._world.repos.items()}

    def _view(self, repo: Repo) -> Path:
        path = self._world.folder / ".stale" / f"{repo.full_name}.git"
        shutil.rmtree(path, ignore_errors=True)
        (path / "objects" / "info").mkdir(parents=True)
        (path / "refs").mkdir()
        (path / "objects" / "info" / "alternates").write_text(f"{repo.git.path / 'objects'}\n")
        shutil.copy(repo.git.path / "HEAD", path / "HEAD")
        shutil.copy(repo.git.path / "config", path / "config")
        refs = "".join(f"{sha} {name}\n" for name, sha in sorted(repo.git.refs().items()))
        (path / "packed-refs").write_text("# pack-refs with: sorted \n" + refs)
        return path

    def fetch(self, repo: Repo, *, begins: bool) -> Path:
        """Return what a fetch is served from; ``begins`` on its first request."""
        if begins and self._git_left > 0:
            self._git_left -= 1
        elif begins:
            self._views = {}
        return self._views.get(repo.full_name, repo.git.path)


def _headers(given: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in given.items()}
