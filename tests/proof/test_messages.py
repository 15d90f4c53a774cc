"""What a message names: git's own subjects of a merge, and trailers in a last block of nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitbus.proof.messages import is_squash, merged, trailers

ids = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,6}[a-z0-9])?", fullmatch=True)
items = st.tuples(ids, ids, ids).map(".".join)
batches = st.tuples(ids, ids).map(".".join)
approvals = (items | batches).map(lambda name: f"gitbus/approve/{name}")
others = st.sampled_from(
    ["main", "gitbus/workers/w", "approve/a.b.c", "x/gitbus/approve/a.b.c", "gitbus/approves/a"]
)
remotes = st.sampled_from(["origin", "a/b", "up.stream"])
urls = st.sampled_from(
    [None, "git@host:acme.git", "https://host/acme", "/home/ada/my bus/acme", "../acme.git"]
)
branches = st.sampled_from([None, "main", "gitbus/bus", "work"])


def joined(kind: str, names: list[str]) -> str:
    """Write branches as git's ``print_joined`` does."""
    quoted = [f"'{name}'" for name in names]
    if len(quoted) == 1:
        return f"{kind} {quoted[0]}"
    return f"{kind}es {', '.join(quoted[:-1])} and {quoted[-1]}"


@given(
    st.lists(approvals | others, max_size=4),
    st.lists(st.tuples(remotes, approvals), max_size=3),
    urls,
    branches,
)
def test_every_subject_that_git_writes(
    local: list[str], far: list[tuple[str, str]], url: str | None, into: str | None
) -> None:
    groups = [joined("branch", local)] if local else []
    groups += [joined("remote-tracking branch", [f"{remote}/{name}" for remote, name in far])] if far else []
    subject = "Merge " + ", ".join(groups) + (f" of {url}" if url else "") + (f" into {into}" if into else "")
    found = merged(subject)
    named = {name for name in local if name.startswith("gitbus/approve/")} | {name for _, name in far}
    assert found.approve == {name.removeprefix("gitbus/approve/") for name in named}
    assert found.decide == frozenset()
    assert found.into == (into if groups else None)


@given(st.lists(st.tuples(approvals, urls.filter(bool)), min_size=1, max_size=3))
def test_several_sources(sources: list[tuple[str, str]]) -> None:
    subject = "Merge " + "; ".join(f"branch '{name}' of {url}" for name, url in sources)
    assert merged(subject).approve == {name.removeprefix("gitbus/approve/") for name, _ in sources}


@given(st.text(), st.text(), items)
def test_no_other_text_names_anything(before: str, after: str, item: str) -> None:
    subject = f"{before}branch 'gitbus/approve/{item}'{after}"
    if merged(subject).approve:
        assert before.startswith("Merge ")
        assert not after or after.startswith((" of ", " into ", "; ", ", ", " and "))


@pytest.mark.parametrize(
    ("subject", "decide"),
    [
        ("Merge branch 'gitbus/decide/bus'", {"bus"}),
        ("Merge branch 'refs/heads/gitbus/decide/a.b.c'", {"a.b.c"}),
        ("Merge remote-tracking branch 'origin/gitbus/decide/a.b.c' into main", {"a.b.c"}),
        ("Merge remote-tracking branch 'gitbus/decide/a.b.c'", set()),
    ],
)
def test_decisions(subject: str, decide: set[str]) -> None:
    assert merged(subject).decide == decide
    assert merged(subject).approve == frozenset()


@pytest.mark.parametrize(
    ("message", "values"),
    [
        ("s\n\nGitbus-Item: a\n", ("a",)),
        (
            "s\n\nbody\n\nGitbus-Verb: approve\nGitbus-Item: a\nGITBUS-ITEM:  b \nSigned-off-by: A <a@b>\n\n",
            ("a", "b"),
        ),
        ("s\nmore\n\n\nGitbus-Item: a", ("a",)),
        ("Gitbus-Item: a\n", ()),
        ("\n\nGitbus-Item: a\n", ()),
        ("s\nGitbus-Item: a\n", ()),
        ("s\n\nGitbus-Item: a\n\nbody\n", ()),
        ("s\n\nbody\nGitbus-Item: a\n", ()),
        ("s\n\n  Gitbus-Item: a\n", ()),
        ("s\n\nGitbus-Item: a\n continued\n", ()),
        ("s\n\nGitbus-Item: a\r\n\r\nx\n", ()),
        ("s\n\nGitbus-Item:\n", ()),
        ("Merge tag 'v1'\n\nGitbus-Item: a\n", ()),
        ("Merge branch 'x', tags 'v1' and 'v2' of y\n\nGitbus-Item: a\n", ()),
        ("", ()),
    ],
)
def test_trailers(message: str, values: tuple[str, ...]) -> None:
    assert trailers(message, "Gitbus-Item") == values


def test_squash() -> None:
    assert is_squash("Squashed commit of the following:\n\ncommit 1\n")
    assert is_squash("approve\n\nSquashed commit of the following:\n")
    assert not is_squash("a Squashed commit of the following: no\n")
