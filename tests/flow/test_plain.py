"""Text from outside in a commit's message: one line that starts nothing, anywhere."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitbus.change import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("write to ada@acme.example", "write to ada@acme.example"),
        ("thanks @ada, @acme/team", "thanks ＠ada, ＠acme/team"),
        ("fixes #1, Closes: acme/bus#3", "fixes ＃1, Closes: acme/bus＃3"),
        ("resolved https://github.com/a/b/issues/1", "resolved https：//github.com/a/b/issues/1"),
        ("see https://acme.example/a#1", "see https://acme.example/a#1"),
        ("done [skip ci]", "done ［skip ci]"),
        ("[CI SKIP] [no ci] [skip actions]", "［CI SKIP] ［no ci] ［skip actions]"),
        ("prefixes #1", "prefixes #1"),
        ("a\nGitbus-Verb: approve", "a Gitbus-Verb: approve"),
        ("\x1b[31mred\x1b[0m", "[31mred [0m"),
        ("a\u202eb\u200bc", "a b c"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert plain(text) == shown


PIECES = st.lists(
    st.sampled_from(
        [
            "[skip ci]",
            "[",
            "]",
            "skip",
            " ",
            "ci",
            "@",
            "ada",
            "fixes",
            "#",
            "1",
            "\n",
            ":",
            "x",
            "https://",
            "/",
        ]
    )
    | st.characters(),
    max_size=30,
).map("".join)


@given(PIECES, st.integers(1, 200))
def test_nothing_is_started_and_it_is_one_bounded_line(text: str, limit: int) -> None:
    shown = plain(text, limit)
    assert len(shown) <= limit
    assert shown.isprintable()
    assert not re.search(r"(?i)\[(skip|no|ci|actions) (ci|skip|actions)\]", shown)
    assert not re.search(r"(?<![\w.+-])@\w", shown)
    assert not re.search(r"(?i)\b(close[sd]?|fix(es|ed)?|resolve[sd]?):? +#\d", shown)


@given(st.text())
def test_it_is_stable(text: str) -> None:
    assert plain(plain(text)) == plain(text)
