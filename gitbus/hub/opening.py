"""Finding the hub of a clone: which repository, which branch, and which of the two ways to it.

Example: ``open_hub(Path("."))``.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from git import InvalidGitRepositoryError, NoSuchPathError, Repo

from gitbus.errors import NoBus, Refused, Unreachable
from gitbus.hub.base import Hub
from gitbus.hub.direct import DirectHub
from gitbus.hub.hook import only_ours
from gitbus.hub.push import PushHub
from gitbus.hub.run import Git

BUS_FILE = "bus.yaml"
USUAL_BRANCHES = ("main", "gitbus/bus")


def find_clone(folder: Path) -> Git:
    """Return the repository that a folder is in.

    Raises:
        NoBus: there is none (rule ``no-repository``).
    """
    try:
        with Repo(folder, search_parent_directories=True) as repo:
            return Git(Path(repo.common_dir).resolve())
    except (InvalidGitRepositoryError, NoSuchPathError, ValueError):
        raise NoBus(
            f"{folder} is in no git repository",
            rule="no-repository",
            remedy="go to a clone of a bus, or make one: gitbus init DIR",
        ) from None


def local_state(folder: Path) -> Path:
    """Return the folder of a clone's own state (journal, locks, pins), which is made if needed."""
    state = find_clone(folder).git_dir / "gitbus"
    state.mkdir(mode=0o700, exist_ok=True)
    return state


def open_hub(folder: Path) -> Hub:
    """Return the hub of the clone that a folder is in.

    Raises:
        NoBus: no repository, no hub, or no bus on it.
        Unreachable: the hub is gone.
    """
    clone = find_clone(folder)
    url = remote_url(clone)
    path = _as_path(url, clone) if url else clone.git_dir if _is_bare(clone) else None
    if path is None and url is None:
        raise _no_bus(folder)
    if path is not None and not path.exists():
        raise Unreachable(
            f"the hub {path} is gone", rule="hub-gone", remedy="bring it back, or set the remote's URL"
        )
    branch = _branch(clone, Git(path) if path else None, url)
    if branch is None:
        raise _no_bus(folder)
    main = f"refs/heads/{branch}"
    if path is not None and _is_direct(path, branch):
        return DirectHub(Git(path), clone, main)
    return PushHub(clone, _remote_name(clone), main)


def _no_bus(folder: Path) -> NoBus:
    return NoBus(
        f"{folder} is in a git repository, but there is no bus on it",
        rule="no-bus",
        remedy="make one: gitbus init DIR, or put one beside this project: gitbus init --branch gitbus/bus .",
    )


def _config(git: Git, key: str) -> str | None:
    ran = git.run("config", "--get", key)
    return ran.out.decode("utf-8", "replace").strip() or None if ran.code == 0 else None


def _is_bare(git: Git) -> bool:
    return _config(git, "core.bare") == "true"


def _remote_name(clone: Git) -> str:
    return _config(clone, "gitbus.remote") or "origin"


def remote_url(clone: Git) -> str | None:
    """Return the URL of the clone's remote, as git resolves it.

    Raises:
        Refused: it would run a program (``ext::``).
    """
    ran = clone.run("remote", "get-url", _remote_name(clone))
    url = ran.out.decode("utf-8", "replace").strip() if ran.code == 0 else ""
    if url.startswith("ext::"):
        raise Refused(
            "the remote's URL would run a program", rule="remote-runs-program", remedy="give it a plain URL"
        )
    return url or None


def _as_path(url: str, clone: Git) -> Path | None:
    """Return the repository on this machine that a URL means; None for anything else."""
    if url.startswith("file://"):
        path = Path(unquote(urlsplit(url).path))
    elif "://" in url or (":" in url.split("/")[0] and not Path(url).exists()):
        return None
    else:
        base = clone.git_dir.parent if clone.git_dir.name == ".git" else clone.git_dir
        path = base / Path(url).expanduser()
    inner = path / ".git"
    return (inner if inner.is_dir() else path).resolve()


def _is_direct(path: Path, branch: str) -> bool:
    git = Git(path)
    if not os.access(path / "objects", os.W_OK) or not (path / "HEAD").exists():
        return False
    return _is_bare(git) and _config(git, "core.hooksPath") in (None, os.devnull) and only_ours(path, branch)


def _branch(clone: Git, hub: Git | None, url: str | None) -> str | None:
    named = os.environ.get("GITBUS_BRANCH") or _config(clone, "gitbus.branch")
    if named:
        return named
    if hub is not None:
        head = hub.run("symbolic-ref", "--short", "HEAD").out.decode().strip()
        return next(
            (one for one in (head, *USUAL_BRANCHES) if one and _holds_bus(hub, f"refs/heads/{one}")), None
        )
    remote = _remote_name(clone)
    head = clone.run("symbolic-ref", "--short", f"refs/remotes/{remote}/HEAD").out.decode().strip()
    known = [head.removeprefix(f"{remote}/"), *USUAL_BRANCHES]
    found = next((one for one in known if one and _holds_bus(clone, f"refs/remotes/{remote}/{one}")), None)
    return found or _by_asking(clone, remote) if url else None


def _by_asking(clone: Git, remote: str) -> str | None:
    ran = clone.run("ls-remote", "--heads", remote, *USUAL_BRANCHES)
    if ran.code != 0:
        raise Unreachable(
            f"the hub {remote} cannot be reached", rule="hub-unreachable", remedy="check network and rights"
        )
    heads = [line.split("refs/heads/")[1] for line in ran.out.decode().splitlines() if "refs/heads/" in line]
    for head in heads:
        clone.run(
            "fetch",
            "--no-tags",
            "--no-write-fetch-head",
            remote,
            f"+refs/heads/{head}:refs/gitbus/hub/{head}",
        )
        if _holds_bus(clone, f"refs/gitbus/hub/{head}"):
            return head
    return None


def _holds_bus(git: Git, ref: str) -> bool:
    return git.run("cat-file", "-e", f"{ref}:{BUS_FILE}").code == 0
