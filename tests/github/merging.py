"""The commits that GitHub makes: merge, squash, rebase, update-branch, and an edit in the browser.

Rules: what GitHub makes by itself is committed by ``GitHub <noreply@github.com>`` and signed by the web
flow; a merge is by the merger, a squash by whoever opened the pull request; rebased commits keep their
authors, are committed by the merger and signed by nobody. A message has no line feed at its end.

Example: ``merge_commit(world, repo, pull, by=ada)`` writes the merge and returns its id; no ref moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from tests.github.bare import ZERO, Made
from tests.github.signing import WEB_FLOW, sign, with_signature
from tests.github.state import Pull, Repo, User, World


class Conflict(Exception):
    """The merge has conflicts."""


def write_commit(
    repo: Repo, tree: str, parents: Sequence[str], author: str, committer: str, message: str, *, signed: bool
) -> str:
    """Write a commit, signed by the web flow or not, and return its id."""
    lines = [
        f"tree {tree}",
        *(f"parent {one}" for one in parents),
        f"author {author}",
        f"committer {committer}",
    ]
    data = "\n".join([*lines, "", message]).encode()
    return repo.git.store(with_signature(data, sign(data)) if signed else data)


def stamp(ident: str, when: datetime) -> str:
    """Return an author or committer line."""
    return f"{ident} {int(when.timestamp())} {when.strftime('%z') or '+0000'}"


def _tree_of_merge(repo: Repo, base: str, head: str) -> str:
    tree = repo.git.merged_tree(base, head)
    if tree is None:
        raise Conflict
    return tree


def merge_commit(
    world: World, repo: Repo, pull: Pull, by: User, base: str, title: str = "", body: str = ""
) -> str:
    """Make the merge of a pull request into a base commit.

    Raises:
        Conflict: they do not merge.
    """
    tree = _tree_of_merge(repo, base, pull.head)
    own = {
        "MERGE_MESSAGE": f"Merge pull request #{pull.number} from {pull.head_owner}/{pull.head_ref}",
        "PR_TITLE": f"{pull.title} (#{pull.number})",
    }
    rest = {"PR_TITLE": pull.title, "PR_BODY": pull.body or "", "BLANK": ""}
    first = title or own[repo.settings.get("merge_commit_title", "MERGE_MESSAGE")]
    second = body or ("" if title else rest[repo.settings.get("merge_commit_message", "PR_TITLE")])
    message = f"{first}\n\n{second}" if second else first
    now = world.now()
    parents = (base, pull.head)
    return write_commit(repo, tree, parents, stamp(by.ident, now), stamp(WEB_FLOW, now), message, signed=True)


def squash_commit(world: World, repo: Repo, pull: Pull, base: str, title: str = "", body: str = "") -> str:
    """Make one commit of all that a pull request brings.

    Raises:
        Conflict: they do not merge.
    """
    tree = _tree_of_merge(repo, base, pull.head)
    made = [repo.git.must(sha) for sha in repo.git.range(base, pull.head)]
    own = [one for one in made if len(one.parents) == 1]
    opener = world.users[pull.by]
    first, second = _squash_words(pull, own)
    message = f"{title or first}\n\n{body or second}".rstrip("\n")
    others = _others(own, opener)
    if others:
        message += "\n\n" + "\n".join(f"Co-authored-by: {one}" for one in others)
    now = world.now()
    author, committer = stamp(opener.ident, now), stamp(WEB_FLOW, now)
    return write_commit(repo, tree, (base,), author, committer, message, signed=True)


def _squash_words(pull: Pull, own: Sequence[Made]) -> tuple[str, str]:
    if len(own) == 1:
        subject, _, rest = own[0].message.partition("\n")
        return f"{subject} (#{pull.number})", rest.strip("\n")
    return f"{pull.title} (#{pull.number})", "\n\n".join(f"* {one.message.strip()}" for one in own)


def _others(own: Iterable[Made], opener: User) -> list[str]:
    """Return who else wrote some of it."""
    known = (opener.email, opener.noreply)
    return list(dict.fromkeys(one.author.ident for one in own if one.author.email not in known))


def rebased(world: World, repo: Repo, pull: Pull, by: User, base: str) -> list[str]:
    """Make a pull request's commits anew on a base commit; merges among them are left out.

    Raises:
        Conflict: one of them does not apply.
    """
    now, done, tip = world.now(), [], base
    for sha in repo.git.range(base, pull.head):
        made = repo.git.must(sha)
        if len(made.parents) != 1:
            continue
        tree = _picked(repo, made, tip)
        author = stamp(made.author.ident, made.author.at)
        tip = write_commit(repo, tree, (tip,), author, stamp(by.ident, now), made.message, signed=False)
        done.append(tip)
    return done


def _picked(repo: Repo, made: Made, tip: str) -> str:
    """Return the tree of a cherry-pick: git 2.38 merges only commits, so the tip is dressed as a child of the parent."""
    parent = made.parents[0]
    if repo.git.must(parent).tree == repo.git.must(tip).tree:
        return made.tree
    line = stamp("x <x@x>", made.author.at)
    dressed = write_commit(repo, repo.git.must(tip).tree, (parent,), line, line, "x", signed=False)
    return _tree_of_merge(repo, dressed, made.sha)


def updated_branch(world: World, repo: Repo, pull: Pull, by: User, base: str) -> str:
    """Make the merge of the base into a pull request's branch, as the button does.

    Raises:
        Conflict: they do not merge.
    """
    tree = _tree_of_merge(repo, pull.head, base)
    now = world.now()
    message = f"Merge branch '{pull.base_ref}' into {pull.head_ref}"
    author, committer = stamp(by.ident, now), stamp(WEB_FLOW, now)
    return write_commit(repo, tree, (pull.head, base), author, committer, message, signed=True)


def edited(world: World, repo: Repo, tip: str, by: User, files: dict[str, str | None], message: str) -> str:
    """Make the commit of an edit in the browser: files' new texts, or None to delete."""
    index = {"GIT_INDEX_FILE": str(repo.git.path / f"index-{world.id()}")}
    repo.git.run("read-tree", tip, env=index)
    lines = []
    for path, text in files.items():
        blob = ZERO if text is None else repo.git.run("hash-object", "-w", "--stdin", data=text)
        lines.append(f"{'0' if text is None else '100644'} {blob}\t{path}\n")
    repo.git.run("update-index", "--index-info", data="".join(lines), env=index)
    tree = repo.git.run("write-tree", env=index)
    now = world.now()
    author, committer = stamp(by.ident, now), stamp(WEB_FLOW, now)
    return write_commit(repo, tree, (tip,), author, committer, message, signed=True)


def trial_merge(repo: Repo, pull: Pull, base: str) -> str | None:
    """Return the merge that GitHub makes to see whether it can; nobody's decision, and on no branch."""

    def make() -> str | None:
        tree = repo.git.merged_tree(base, pull.head)
        if tree is None:
            return None
        line = stamp(WEB_FLOW, repo.git.must(pull.head).committer.at)
        message = f"Merge {pull.head} into {base}"
        return write_commit(repo, tree, (base, pull.head), line, line, message, signed=False)

    found: str | None = repo.git.once("test-merge", base, pull.head, make=make)
    return found
