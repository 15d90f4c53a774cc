"""Making a hub and a clone of it.

Example: ``create_hub(Path("acme.git"), "main")``, then ``create_clone("acme.git", Path("acme"), "main")``.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from gitbus.effects import effect
from gitbus.errors import Refused, Unreachable
from gitbus.hub.hook import install_hook
from gitbus.hub.run import Git, environment, said

_SETTINGS = {
    "gc.auto": "0",
    "receive.autogc": "false",
    "receive.fsckObjects": "true",
    "receive.denyDeletes": "false",
    "core.logAllRefUpdates": "false",
}


def create_hub(path: Path, branch: str) -> Git:
    """Make a bare repository to be a hub, empty but for its hook.

    Raises:
        Refused: something stands there already (rule ``exists``).
    """
    if path.exists() and any(path.iterdir()):
        raise Refused(
            f"{path} exists and is not empty", rule="exists", remedy="name a folder that does not exist yet"
        )
    effect("file-write", str(path))
    _plain_git("init", "--quiet", "--bare", "--template=", f"--initial-branch={branch}", str(path))
    git = Git(path.resolve())
    for key, value in _SETTINGS.items():
        git.text("config", key, value)
    install_hook(git.git_dir, branch)
    return git


def create_clone(url: str, folder: Path, branch: str) -> Git:
    """Clone a hub so that a person can work in it.

    Raises:
        Refused: something stands there already (rule ``exists``).
        Unreachable: the hub cannot be cloned.
    """
    if folder.exists() and any(folder.iterdir()):
        raise Refused(
            f"{folder} exists and is not empty", rule="exists", remedy="name a folder that does not exist yet"
        )
    effect("file-write", str(folder))
    _plain_git("clone", "--quiet", "--template=", "--no-local", f"--branch={branch}", url, str(folder))
    git = Git((folder / ".git").resolve())
    git.text("config", "pull.ff", "only")
    if branch != "main":
        git.text("config", "gitbus.branch", branch)
    return git


def _plain_git(*arguments: str) -> None:
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, check=False, env=environment(), stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise Unreachable(
            "git is not on this machine", rule="no-git", remedy="install git 2.38 or newer"
        ) from None
    if done.returncode != 0:
        raise Unreachable(
            f"git {arguments[0]} failed: {said(done.stderr.decode('utf-8', 'replace'))}",
            rule="git-failed",
        )
