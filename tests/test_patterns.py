"""Which patterns are tried at all, and that those that are cannot run away."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gitbus import patterns


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^[a-z0-9]+(-[a-z0-9]+)*$",
        r"^(\d{1,3}\.){3}\d{1,3}$",
        r"^v?\d+\.\d+\.\d+(-[\w.]+)?$",
        r"^[^@\s]+@[^@\s]+\.[a-z]+$",
        "^(?:[a-z]+/)*[a-z]+$",
        "(a|b)c",
        "((ab){2}c)+",
        r"(?i:x)\b[\W\d]?",
        "^([^,]*,)+$",
        "a{3,5}",
    ],
)
def test_common_patterns_are_fine(pattern: str) -> None:
    assert patterns.why_not(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a*)*b",
        "(a|aa)+",
        "(x+x+)+y",
        r"([\w.]+.)+$",
        "(.*,)*x",
        r"(\s*a?)+$",
        "(a{1,9}){2,}",
        r"(a)\1",
        "(?=a)b",
        "(?<!a)b",
        "(a)?(?(1)b|c)",
        "[",
        "a" * 1001,
        "(?z)",
    ],
)
def test_what_can_run_away_or_is_none_is_refused(pattern: str) -> None:
    assert patterns.why_not(pattern) is not None


def test_cost_grows_with_what_repeats_can_share_out() -> None:
    assert patterns.cost("^a", 1000) == 1001
    assert patterns.cost(r"^\d+\.\d+$", 100) == patterns.cost(r"^\d+$", 100)
    assert patterns.cost("a*a*", 100) > patterns.cost("a*", 100) > patterns.cost("^a", 100)


PARTS = st.sampled_from(
    ["a", "b", "a*", "b+", "[ab]*", ".*", "a?", "(a|b)", "(ab)*", "(a*b)+", "(ba*)*", "[^a]+"]
)


@settings(deadline=None, derandomize=True)
@given(
    st.lists(PARTS, min_size=1, max_size=5).map("".join),
    st.text("ab", max_size=3),
    st.text("abc", max_size=1),
)
def test_what_is_fine_takes_no_longer_than_its_cost(pattern: str, seed: str, end: str) -> None:
    assume(patterns.why_not(pattern) is None)
    length = 200
    while patterns.cost(pattern, length) > 3_000_000 and length > 4:
        length //= 2
    text = (seed or "a") * (length // max(1, len(seed))) + end
    begun = time.process_time()
    re.search(pattern + "$", text[:length])
    assert time.process_time() - begun < 2
