"""Finding the hub of a clone: which repository, which branch, and which of the two ways to it.

Rules: the clone is found by git itself, which refuses one that somebody else owns. The remote is
``gitbus.remote`` or ``origin``; without any, the repository is its own hub where it is bare, or
where ``gitbus.branch`` names a branch that nobody has checked out. The branch is
``GITBUS_BRANCH``, else ``gitbus.branch``, else the first of the hub's own choice, ``main`` and
``gitbus/bus`` that holds a ``bus.yaml``.

Example: ``open_hub(Path("."))``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gitbus.errors import NoBus, Refused, Unreachable
from gitbus.hub.base import Hub
from gitbus.hub.direct import DirectHub
from gitbus.hub.hook import only_ours
from gitbus.hub.moving import HEADS, no_branch
from gitbus.hub.push import KEPT, PushHub
from gitbus.hub.run import Git, failed, no_git, run, said, settings

BUS_FILE = "bus.yaml"
USUAL_BRANCHES = ("main", "gitbus/bus")


def find_clone(folder: Path) -> Git:
    """Return the repository that a folder is in; of linked working trees, the one they share.

    Raises:
        NoBus: there is none (rule ``no-repository``).
    """
    if not folder.is_dir():
        raise _no_repository(folder, "there is no such folder")
    asked = ("--path-format=absolute", "--git-common-dir", "--is-bare-repository")
    ran = run(["git", *settings(), "-C", str(folder), "rev-parse", *asked])
    if ran.code != 0:
        raise _no_repository(folder, said(ran.err))
    common, bare = ran.text.splitlines()
    if bare == "true":
        return Git(Path(common))
    top = run(["git", *settings(), "-C", str(folder), "rev-parse", "--show-toplevel"])
    return Git(Path(common), Path(top.text) if top.code == 0 else None)


def _no_repository(folder: Path, why: str) -> NoBus:
    return NoBus(
        f"{folder} is in no git repository that can be used: {why}",
        rule="no-repository",
        remedy="go to a clone of a bus, or make one: gitbus init DIR",
    )


def local_state(folder: Path) -> Path:
    """Return the folder of a clone's own state (journal, locks, pins), which is made if needed.

    Raises:
        NoBus: there is no repository (rule ``no-repository``).
    """
    state = find_clone(folder).git_dir / "gitbus"
    state.mkdir(mode=0o700, exist_ok=True)
    return state


def hub_url(folder: Path) -> str | None:
    """Return the URL of the hub of the clone that a folder is in; None where the clone names none.

    Raises:
        NoBus: there is no repository (rule ``no-repository``).
    """
    return remote_url(find_clone(folder))


def open_hub(folder: Path, *, offline: bool = False) -> Hub:
    """Return the hub of the clone that a folder is in.

    Args:
        folder: somewhere in a clone.
        offline: take a bare clone as it is, as if it were the hub, instead of asking its remote.

    Raises:
        NoBus: no repository, no hub, or no bus on it.
        Refused: the remote's URL would run a program (rule ``remote-runs-program``).
        Unreachable: the hub is gone.
    """
    clone = find_clone(folder)
    url = None if offline and _is_bare(clone) else remote_url(clone)
    if url is None:
        return _own_hub(clone)
    path = local_path(url, clone)
    if path is None:
        return _push_hub(clone)
    hub = _repository(path)
    if _is_direct(hub) and remote_url(clone, push=True) == url:
        return _direct_hub(hub, clone)
    return _push_hub(clone, hub)


def _own_hub(clone: Git) -> Hub:
    """Take a repository without a remote for its own hub, where no working tree follows the bus's branch."""
    if _is_bare(clone):
        return _direct_hub(clone, clone)
    named = _named_branch(clone)
    checked_out = clone.text("worktree", "list", "--porcelain").splitlines()
    if named is None or f"branch {HEADS}{named}" in checked_out:
        raise NoBus(
            f"{clone.git_dir} has no remote that could be the hub",
            rule="no-bus",
            remedy="make a bus: gitbus init DIR, or name the hub: git remote add origin URL",
        )
    return _direct_hub(clone, clone)


def _is_bare(git: Git) -> bool:
    return git.config("core.bare", local=True) == "true"


def _direct_hub(hub: Git, clone: Git) -> Hub:
    named = _named_branch(clone)
    known = (named,) if named else _likely(hub.run("symbolic-ref", "--short", "HEAD").text)
    branch = next((one for one in known if _holds_bus(hub, HEADS + one)), None)
    if branch is None:
        raise no_branch(HEADS + (named or "main"))
    return DirectHub(hub, clone, HEADS + branch)


def _push_hub(clone: Git, hub: Git | None = None) -> Hub:
    remote = remote_name(clone)
    branch = _named_branch(clone) or _tracked_branch(clone, remote) or _asked_branch(clone, remote)
    if branch is None:
        raise no_branch(HEADS + "main")
    return PushHub(clone, remote, HEADS + branch, hub.git_dir if hub else None)


# --- the branch


def _named_branch(clone: Git) -> str | None:
    return os.environ.get("GITBUS_BRANCH") or clone.config("gitbus.branch")


def _likely(first: str) -> Iterable[str]:
    return dict.fromkeys(one for one in (first, *USUAL_BRANCHES) if one)


def _tracked_branch(clone: Git, remote: str) -> str | None:
    prefix = f"refs/remotes/{remote}/"
    head = clone.run("symbolic-ref", f"{prefix}HEAD").text.removeprefix(prefix)
    return next((one for one in _likely(head) if _holds_bus(clone, prefix + one)), None)


def _asked_branch(clone: Git, remote: str) -> str | None:
    ran = clone.run("ls-remote", "--heads", remote, *(HEADS + one for one in USUAL_BRANCHES))
    if ran.code != 0:
        remedy = "check the network, the remote's URL and your rights"
        raise failed("the hub cannot be reached", ran, clone.git_dir, rule="hub-unreachable", remedy=remedy)
    for line in ran.text.splitlines():
        branch = line.partition("\t" + HEADS)[2]
        kept = f"{KEPT}/{branch}"
        clone.run(
            "fetch", "--no-tags", "--no-write-fetch-head", "--refmap=", remote, f"+{HEADS}{branch}:{kept}"
        )
        if _holds_bus(clone, kept):
            return branch
    return None


def _holds_bus(git: Git, ref: str) -> bool:
    return git.run("cat-file", "-e", f"{ref}:{BUS_FILE}").code == 0


# --- the remote


def remote_name(clone: Git) -> str:
    """Return the name of the remote that is the hub."""
    return clone.config("gitbus.remote") or "origin"


def remote_url(clone: Git, *, push: bool = False) -> str | None:
    """Return the URL of the clone's remote, as git resolves it; None where there is none.

    Raises:
        Refused: it would run a program (rule ``remote-runs-program``).
    """
    ran = clone.run("remote", "get-url", *(("--push",) if push else ()), remote_name(clone))
    url = ran.text if ran.code == 0 else ""
    if url.startswith("ext::"):
        raise Refused(
            "the remote's URL would run a program", rule="remote-runs-program", remedy="give it a plain URL"
        )
    return url or None


def local_path(url: str, clone: Git) -> Path | None:
    """Return the path on this machine that a URL means, by git's own rule; None for anything else."""
    if url.startswith("file://"):
        return Path(unquote(urlsplit(url).path))
    if "://" in url or "::" in url or ":" in url.split("/", 1)[0]:
        return None
    return (clone.folder or clone.git_dir) / url


def _repository(path: Path) -> Git:
    """Return the repository at a path, looked for as git does.

    Raises:
        Unreachable: there is none (rule ``hub-gone``).
    """
    for name in (path / ".git", path, Path(f"{path}.git/.git"), Path(f"{path}.git")):
        if (name / "HEAD").is_file() and (name / "objects").is_dir():
            return Git(name.resolve())
    if not path.exists():
        raise no_git(path)
    raise Unreachable(
        f"{path} is no git repository", rule="hub-gone", remedy="bring it back, or set the remote's URL"
    )


def _is_direct(hub: Git) -> bool:
    """Say whether nobody minds that no hook runs: a bare repository that we can write, with no hook but ours."""
    writable = all(os.access(hub.git_dir / name, os.W_OK) for name in ("objects", "refs"))
    return (
        writable
        and _is_bare(hub)
        and hub.config("core.hooksPath", local=True) is None
        and only_ours(hub.git_dir)
    )
