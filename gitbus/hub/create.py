"""Making a hub and a clone of it.

Example: ``create_hub(Path("acme.git"), "main")``, then ``create_clone("acme.git", Path("acme"), "main")``.
"""

from __future__ import annotations

from pathlib import Path

from gitbus.effects import effect
from gitbus.errors import Misuse, Refused, Unreachable
from gitbus.hub.hook import install_hook
from gitbus.hub.run import Git, run, said, settings

_SETTINGS = {
    "gc.auto": "0",
    "receive.autogc": "false",
    "receive.fsckObjects": "true",
    "receive.denyDeletes": "false",
    "receive.denyNonFastForwards": "false",  # presence is replaced; the hook keeps the bus's branch
    "core.fsync": "committed",
    "core.logAllRefUpdates": "false",
}
_FORMAT = {"init.defaultRefFormat": "files"}


def create_hub(path: Path, branch: str) -> Git:
    """Make a bare repository to be a hub, empty but for its hook.

    Raises:
        Misuse: the branch's name cannot be one (rule ``bad-branch``).
        Refused: something stands there already (rule ``exists``).
    """
    refuse_existing(path)
    check_branch(branch)
    effect("file-write", str(path))
    plain_git(
        "init",
        "--quiet",
        "--bare",
        "--template=",
        "--object-format=sha1",
        f"--initial-branch={branch}",
        str(path),
    )
    git = Git(path.resolve())
    for key, value in {**_SETTINGS, "gitbus.branch": branch}.items():
        git.text("config", key, value)
    install_hook(git.git_dir)
    return git


def create_clone(url: str, folder: Path, branch: str) -> Git:
    """Clone a hub so that a person can work in it.

    Raises:
        Misuse: the branch's name cannot be one (rule ``bad-branch``).
        Refused: something stands there already (rule ``exists``).
        Unreachable: the hub cannot be cloned.
    """
    refuse_existing(folder)
    check_branch(branch)
    effect("connect", url)
    plain_git(
        "clone",
        "--quiet",
        "--template=",
        "--origin=origin",
        "--no-local",
        f"--branch={branch}",
        url,
        str(folder),
    )
    git = Git((folder / ".git").resolve(), folder.resolve())
    settle_clone(git, branch)
    return git


def settle_clone(git: Git, branch: str) -> None:
    """Configure a clone for people: a pull never merges, and a branch with another name is known."""
    git.text("config", "pull.ff", "only")
    if branch != "main":
        git.text("config", "gitbus.branch", branch)


def refuse_existing(path: Path) -> None:
    """Refuse a folder that is not empty.

    Raises:
        Refused: something stands there already (rule ``exists``).
    """
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise Refused(
            f"{path} exists and is not empty", rule="exists", remedy="name a folder that does not exist yet"
        )


def check_branch(branch: str) -> None:
    """Refuse a name that no branch can have.

    Raises:
        Misuse: it cannot be one (rule ``bad-branch``).
    """
    if run(["git", "check-ref-format", f"refs/heads/{branch}"]).code != 0 or branch.startswith("-"):
        raise Misuse(f"{branch!r} cannot be the name of a branch", rule="bad-branch")


def plain_git(*arguments: str) -> None:
    """Run git where there is no repository yet.

    Raises:
        Unreachable: it failed.
    """
    ran = run(["git", *settings(_FORMAT), *arguments])
    if ran.code != 0:
        raise Unreachable(f"git {arguments[0]} failed: {said(ran.err)}", rule="git-failed")
