"""Making a bus: the hub, its first commit, a clone, and the first approver.

The first commit is the root of everything that is proved later; a sender pins it.

Example: ``make_bus(Path("acme"), name="acme", approver=Approver("ada", "ada@acme.example", key))``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gitbus import paths
from gitbus.codec import emit
from gitbus.effects import effect
from gitbus.errors import Refused, Unreachable
from gitbus.history import Oid
from gitbus.hub import Author, Draft, create_clone, create_hub, find_clone, local_state
from gitbus.hub.run import Git, environment
from gitbus.hub.store import GitStore
from gitbus.pins import pin_root
from gitbus.records import Bus

ATTRIBUTES = """# Records are exactly what was written: no line ending is ever changed.
* -text
*.yaml diff
"""

README = """# The bus `{name}`

This repository is a gitbus bus: goals, tasks, results, approvals
and receipts are YAML records committed to it.

- `gitbus status` says what is going on and what waits for you.
- `gitbus review` shows what would leave the house; `gitbus approve ITEM` approves it with your key.
- `git log` is the whole history; `gitbus audit` proves it.

Sending is off until somebody with the right merges `sending.enabled: true` into `bus.yaml`.
"""

BUS_HEAD = """# What this bus is: people, channels, policy. A change counts once an approver signed it
# (gitbus config set …). Every field: gitbus schema Bus
"""


@dataclass(frozen=True)
class Approver:
    """The first person of a bus, who may approve: by a key, by an account on GitHub (login, number), or both."""

    id: str
    email: str
    key: str | None = None
    github: tuple[str, int] | None = None


More = Callable[[Oid], Mapping[str, bytes]]
"""Returns the files of a commit that comes right after the root, which they may name."""


def no_more(root: Oid) -> Mapping[str, bytes]:
    """Return nothing: the root is all there is."""
    del root
    return {}


@dataclass(frozen=True)
class Made:
    """What was made: the clone to work in, the hub, and the root commit."""

    clone: Path
    hub: str
    root: Oid


def make_bus(
    folder: Path,
    *,
    name: str,
    approver: Approver,
    hub: str | None = None,
    branch: str = "main",
    channels: dict[str, object] | None = None,
    policy: dict[str, object] | None = None,
    more: More = no_more,
) -> Made:
    """Make a bus with its hub beside the clone, or on an empty repository that exists.

    Args:
        folder: where the clone goes.
        name: the bus's name.
        approver: the first person.
        hub: a path that does not exist yet, or the URL of an empty repository; ``FOLDER.git``
            unless given.
        branch: the bus's branch.
        channels: the first channels.
        policy: further top-level fields of ``bus.yaml``.
        more: returns the files of a second commit, given the first.

    Raises:
        Refused: something is in the way.
        Unreachable: the hub cannot be made or reached.
    """
    if folder.exists() and any(folder.iterdir()):
        raise Refused(
            f"{folder} exists and is not empty", rule="exists", remedy="name a folder that does not exist yet"
        )
    where = hub or str(folder.resolve().parent / (folder.resolve().name + ".git"))
    files = first_files(name, approver, channels or {}, policy or {})
    if "://" in where or (":" in where.split("/")[0]):
        root = _on_remote(where, folder, branch, files, more)
    else:
        root = _on_path(Path(where), branch, files, more)
        create_clone(str(Path(where).resolve()), folder, branch)
    pin_root(local_state(folder), root)
    return Made(folder, where, root)


def beside_project(
    folder: Path,
    *,
    name: str,
    approver: Approver,
    branch: str,
    policy: dict[str, object] | None = None,
    more: More = no_more,
) -> Made:
    """Put a bus on an orphan branch of the repository that a folder is in.

    Args:
        folder: somewhere in the project's clone.
        name: the bus's name.
        approver: the first person.
        branch: the bus's branch.
        policy: further top-level fields of ``bus.yaml``.
        more: returns the files of a second commit, given the first.

    Raises:
        Refused: the branch exists.
    """
    clone = find_clone(folder)
    remote = clone.run("remote", "get-url", "origin")
    files = first_files(name, approver, {}, policy or {})
    ref = f"refs/heads/{branch}"
    root, tip = _first_commits(GitStore(clone, clone), files, more)
    if remote.code == 0:
        ran = clone.run("push", "--no-verify", f"--force-with-lease={ref}:", "origin", f"{tip}:{ref}")
        if ran.code != 0:
            raise Refused(
                f"the branch {branch} cannot be made on origin",
                rule="exists",
                remedy="does it exist already?",
            )
    elif clone.run("update-ref", ref, tip, "0" * 40).code != 0:
        raise Refused(f"the branch {branch} exists", rule="exists", remedy="name another branch")
    clone.text("config", "gitbus.branch", branch)
    pin_root(local_state(folder), root)
    return Made(folder, remote.out.decode().strip() or str(clone.git_dir), root)


def first_files(
    name: str, approver: Approver, channels: dict[str, object], policy: dict[str, object]
) -> dict[str, bytes]:
    """Return the files of a bus's first commit."""
    data: dict[str, object] = {
        "apiVersion": "gitbus/v1",
        "kind": "Bus",
        "name": name,
        "people": [_person(approver)],
        **policy,
        "sending": {"enabled": False, **dict(policy.get("sending", {}))},  # type: ignore[call-overload]
        "channels": channels,
    }
    Bus.model_validate(data)
    return {
        paths.BUS: (BUS_HEAD + emit(data)).encode(),
        ".gitattributes": ATTRIBUTES.encode(),
        "README.md": README.format(name=name).encode(),
    }


def _person(approver: Approver) -> dict[str, object]:
    github = {"github": dict(zip(("login", "id"), approver.github, strict=True))} if approver.github else {}
    keys = [approver.key] if approver.key else []
    roles = ["approver", "reviewer"]
    return {"id": approver.id, "email": approver.email, "roles": roles, **github, "keys": keys}


def _first_commits(store: GitStore, files: dict[str, bytes], more: More) -> tuple[Oid, Oid]:
    """Make the root, and what comes right after it; return both, which may be one."""
    root = _commit(store, files, None, "begin the bus", "begin")
    further = more(root)
    tip = _commit(store, dict(further), root, "set up what the host needs", "setup") if further else root
    store.flush()
    return root, tip


def _commit(store: GitStore, files: dict[str, bytes], parent: Oid | None, subject: str, verb: str) -> Oid:
    tree = store.write_tree(store.commit(parent).tree if parent else None, files)
    author = Author("gitbus", "gitbus@bus")
    message = f"{subject}\n\nGitbus-Verb: {verb}\n"
    return store.write_commit(Draft(tree, (parent,) if parent else (), message, author))


def _on_path(path: Path, branch: str, files: dict[str, bytes], more: More) -> Oid:
    git = create_hub(path, branch) if not (path / "HEAD").exists() else Git(path.resolve())
    root, tip = _first_commits(GitStore(git, git), files, more)
    effect("ref-move", branch)
    if git.run("update-ref", f"refs/heads/{branch}", tip, "0" * 40).code != 0:
        raise Refused(
            f"{path} has a branch {branch} already", rule="exists", remedy="name an empty repository"
        )
    return root


def _on_remote(url: str, folder: Path, branch: str, files: dict[str, bytes], more: More) -> Oid:
    ref = f"refs/heads/{branch}"
    done = subprocess.run(
        ["git", "init", "--quiet", "--template=", f"--initial-branch={branch}", str(folder)],
        check=False,
        capture_output=True,
        env=environment(),
    )
    if done.returncode != 0:
        raise Refused(f"{folder} cannot be made", rule="exists")
    clone = find_clone(folder)
    clone.text("remote", "add", "origin", url)
    root, tip = _first_commits(GitStore(clone, clone), files, more)
    effect("push", ref)
    ran = clone.run("push", "--no-verify", f"--force-with-lease={ref}:", "origin", f"{tip}:{ref}")
    if ran.code != 0:
        raise Unreachable(
            f"the first commit cannot be pushed to {url}",
            rule="push-refused",
            remedy=f"it has to be an empty repository (without a branch {branch}) that you may push to",
        )
    clone.text("config", "pull.ff", "only")
    if branch != "main":
        clone.text("config", "gitbus.branch", branch)
    clone.text("fetch", "--quiet", "origin")
    work = subprocess.run(
        ["git", "-C", str(folder), "checkout", "--quiet", "-B", branch, "--track", f"origin/{branch}"],
        check=False,
        capture_output=True,
        env=environment(),
    )
    if work.returncode != 0:
        raise Unreachable("the new clone cannot be checked out", rule="git-failed")
    return root


def find_key(folder: Path) -> str | None:
    """Return the public part of the signing key that the user's git is set up with; None where there is none."""
    git = _user_git(folder)
    key = git("config", "user.signingkey")
    if not key:
        return None
    if git("config", "gpg.format") == "ssh":
        return _ssh_public(key)
    exported = subprocess.run(["gpg", "--armor", "--export", key], capture_output=True, check=False)
    text = exported.stdout.decode("ascii", "replace").strip()
    return text or None


def _user_git(folder: Path):  # type: ignore[no-untyped-def]  # noqa: ANN202
    def ask(*arguments: str) -> str:
        where = folder if folder.is_dir() else Path.cwd()
        done = subprocess.run(
            ["git", "-C", str(where), *arguments], capture_output=True, check=False, env=environment()
        )
        return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""

    return ask


def _ssh_public(key: str) -> str | None:
    if key.startswith(("ssh-", "ecdsa-", "sk-")):
        return key
    if key.startswith("key::"):
        return key.removeprefix("key::")
    path = Path(key).expanduser()
    for candidate in (path, path.with_name(path.name + ".pub")):
        if candidate.is_file():
            text = candidate.read_text("utf-8", "replace").strip()
            if text.startswith(("ssh-", "ecdsa-", "sk-")):
                return text
    return None


def user_identity(folder: Path) -> tuple[str, str]:
    """Return the name and email of the user's git; empty where there are none."""
    ask = _user_git(folder)
    return ask("config", "user.name"), ask("config", "user.email")


def make_key(path: Path, comment: str) -> str:
    """Make an ed25519 key without a passphrase and return its public line.

    Raises:
        Unreachable: ssh-keygen is not there or fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    effect("file-write", str(path))
    try:
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)],
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        raise Unreachable(
            f"no key can be made at {path}", rule="no-ssh-keygen", remedy="install OpenSSH's client"
        ) from None
    return path.with_name(path.name + ".pub").read_text("utf-8").strip()


def use_key(clone: Path, key: Path, name: str, email: str) -> None:
    """Set a clone up to sign with an SSH key, as this person."""
    git = find_clone(clone)
    for setting, value in (("gpg.format", "ssh"), ("user.signingkey", str(key))):
        git.text("config", setting, value)
    use_identity(clone, name, email)


def use_identity(clone: Path, name: str, email: str) -> None:
    """Set up as whom a clone commits."""
    git = find_clone(clone)
    for setting, value in (("user.name", name), ("user.email", email)):
        git.text("config", setting, value)
