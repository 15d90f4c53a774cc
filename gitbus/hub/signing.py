"""Signing as the user: who he is, and commits made with his own key by git's own means.

Example: ``sign_commit(hub, clone, draft, user_identity(clone), "1764532800 +0000")``.
"""

from __future__ import annotations

import os

from gitbus.effects import effect
from gitbus.errors import Refused
from gitbus.history import Oid
from gitbus.hub.base import Author, Draft
from gitbus.hub.objects import OID, message_bytes
from gitbus.hub.run import Git, disk_full, failed, said

_IDENTITY = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL")


def user_identity(user: Git) -> Author:
    """Return who the user is, as his git says it; what git would only guess does not count.

    Raises:
        Refused: it does not say (rule ``no-identity``).
    """
    env = {name: os.environ[name] for name in _IDENTITY if name in os.environ}
    ran = user.run("var", "GIT_AUTHOR_IDENT", env=env, config={"user.useConfigOnly": "true"})
    name, _, rest = ran.text.rpartition(" <")
    email = rest.partition(">")[0]
    if ran.code != 0 or not name or not email:
        raise Refused(
            "git does not know who you are",
            rule="no-identity",
            remedy="git config --global user.name 'Your Name' && "
            "git config --global user.email you@example.org",
        )
    return Author(name, email)


def clean(text: str) -> str:
    """Return a name or address without what would end it in a commit's header."""
    kept = "".join(char for char in text if char not in "<>\n\r\0")
    return kept.strip(" .,:;\"\\'") or "unknown"


def sign_commit(git: Git, user: Git, draft: Draft, author: Author, stamp: str) -> Oid:
    """Write a signed commit into ``git`` with the configuration of ``user``; return its id.

    Raises:
        Refused: git could not sign (rule ``cannot-sign``).
        Unreachable: the disk is full (rule ``disk``).
    """
    parents = [part for one in draft.parents for part in ("-p", one)]
    name, email = clean(author.name), clean(author.email)
    who = {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in (("NAME", name), ("EMAIL", email), ("DATE", f"@{stamp}"))
    }
    where = {"GIT_OBJECT_DIRECTORY": str(git.git_dir / "objects")}
    effect("object-write", "a signed commit")
    ran = user.run(
        "commit-tree",
        "-S",
        draft.tree,
        *parents,
        "-F",
        "-",
        given=message_bytes(draft.message),
        env=who | where,
    )
    if ran.code == 0 and OID.fullmatch(ran.text):
        return ran.text
    if disk_full(git.git_dir):
        raise failed("the commit cannot be written", ran, git.git_dir, rule="disk")
    raise Refused(
        f"git could not sign: {said(ran.err)}",
        rule="cannot-sign",
        remedy="set user.signingkey and gpg.format (ssh or openpgp), and see that the key can be used: "
        "`gitbus doctor` looks",
    )
