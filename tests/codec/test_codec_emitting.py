"""The canonical form is read back as the same value by YAML 1.1, by YAML 1.2 and by the fast parser."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gitbus.codec import canonical, emit, load
from gitbus.codec.nodes import compose
from gitbus.errors import Invalid
from tests.codec.values import TRAPS, mappings, texts, typed

FORMS = [
    ({}, "{}\n"),
    ({"a": None, "b": True, "c": [], "d": {}}, "a: null\nb: true\nc: []\nd: {}\n"),
    ({"z": 1, "a": -2}, "z: 1\na: -2\n"),
    ({"a": ["x", {"b": 1, "c": 2}, [1, [2]]]}, "a:\n  - x\n  - b: 1\n    c: 2\n  - - 1\n    - - 2\n"),
    ({"a": {"b": {"c": "d"}}}, "a:\n  b:\n    c: d\n"),
    ({"a": 1e-7, "b": 1e16, "c": 1.0, "d": -0.0}, "a: 1.0e-07\nb: 1.0e+16\nc: 1.0\nd: -0.0\n"),
    ({"a": "no", "on": "1e3"}, 'a: "no"\n"on": "1e3"\n'),
    ({"a": "2026-01-01", "b": "0x10", "c": "12:30:45"}, 'a: "2026-01-01"\nb: "0x10"\nc: "12:30:45"\n'),
    ({"a": "", "b": "~", "c": "=", "<<": "null"}, 'a: ""\nb: "~"\nc: "="\n"<<": "null"\n'),
    ({"a": "1a2b3c", "b": "a1b2c3", "c": "15m", "d": "1MiB"}, 'a: "1a2b3c"\nb: a1b2c3\nc: 15m\nd: 1MiB\n'),
    ({"a": "release-1-0", "b": "git@x.org", "c": "it's #1"}, 'a: release-1-0\nb: git@x.org\nc: "it\'s #1"\n'),
    ({"a": "x: y", "b": "x:y", "c": "x:"}, 'a: "x: y"\nb: x:y\nc: "x:"\n'),
    ({"a": "Grüße, 日本 😀"}, "a: Grüße, 日本 😀\n"),
    ({"a": "x\ny"}, "a: |-\n  x\n  y\n"),
    ({"a": "x\n\ny\n"}, "a: |\n  x\n\n  y\n"),
    ({"a": "x\n\n\n", "b": 1}, "a: |+\n  x\n\n\nb: 1\n"),
    ({"a": "  x\ny"}, "a: |2-\n    x\n  y\n"),
    ({"a": "\n x\n"}, "a: |2\n\n   x\n"),
    ({"a": ["x\ny\n"]}, "a:\n  - |\n    x\n    y\n"),
    ({"a": "x \n y\n"}, 'a: "x \\n\\\n  \\ y\\n"\n'),
    ({"a": "x\ty\nz\n\nw"}, 'a: "x\\ty\\n\\\n  z\\n\\\n  \\n\\\n  w"\n'),
    ({"a": "x\x85\u2028\xa0\ufeff\u202e"}, 'a: "x\\u0085\\u2028\\u00a0\\ufeff\\u202e"\n'),
    ({"a": "\U000e0001"}, 'a: "\\U000e0001"\n'),
    ({"x" * 1001: 1}, f"? {'x' * 1001}\n: 1\n"),
    ({"a": (1, 2)}, "a:\n  - 1\n  - 2\n"),
]


@pytest.mark.parametrize(("data", "text"), FORMS, ids=range(len(FORMS)))
def test_form(data: dict[str, Any], text: str) -> None:
    assert emit(data) == text


def nested(depth: int, inner: Any = 1) -> dict[str, Any]:
    value = inner
    for _ in range(depth - 1):
        value = [value]
    return {"a": value}


def nested_names(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


REFUSED = [
    ({"a": math.inf}, "non-finite"),
    ({"a": [math.nan]}, "non-finite"),
    ({"a": 10**4300}, "number-too-long"),
    ({"a": -(10**4300)}, "number-too-long"),
    ({"a": "\x1b[2J"}, "control-character"),
    ({"a": "x\ny\x00"}, "control-character"),
    ({"a": "x\ry"}, "control-character"),
    ({"a": "\x7f"}, "control-character"),
    ({"a": "\x9b"}, "control-character"),
    ({"\x07": 1}, "control-character"),
    ({"a": "\ud800"}, "control-character"),
    ({1: 1}, "key-not-text"),
    ({"a": {True: 1}}, "key-not-text"),
    ({"a": {1, 2}}, "not-json"),
    ({"a": b"x"}, "not-json"),
    (nested(65), "too-deep"),
    (nested_names(65), "too-deep"),
    (nested(64, {}), "too-deep"),
    (nested(65, {"a": 1}), "too-deep"),
]


@pytest.mark.parametrize(("data", "rule"), REFUSED, ids=range(len(REFUSED)))
def test_refused(data: dict[str, Any], rule: str) -> None:
    with pytest.raises(Invalid) as caught:
        emit(data)
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    "data", [nested(64), nested_names(64), nested(63, {"a": 1}), {"a": 10**4300 - 1}, {"a": 1 - 10**4300}]
)
def test_the_last_that_is_written(data: dict[str, Any]) -> None:
    text = emit(data)
    assert canonical.parse(text) == compose(text, "").root.data() == data


@pytest.mark.parametrize("trap", TRAPS, ids=range(len(TRAPS)))
def test_traps(trap: str) -> None:
    for data in ({"a": trap}, {"a": [trap]}, {trap: "x"}, {"a": [{trap: trap}]}, {"a": [[trap, trap]]}):
        check_all_readers(data)


@settings(max_examples=80, deadline=None)
@given(mappings)
def test_every_reader_reads_the_same(data: dict[str, Any]) -> None:
    check_all_readers(data)


@pytest.mark.long
@settings(max_examples=5000, deadline=None)
@given(mappings)
def test_every_reader_reads_the_same_at_length(data: dict[str, Any]) -> None:
    check_all_readers(data)


def check_all_readers(data: dict[str, Any]) -> None:
    text = emit(data)
    assert typed(compose(text, "").root.data()) == typed(data)  # YAML 1.2, by the careful reader
    assert typed(yaml.safe_load(text)) == typed(data)  # YAML 1.1
    long_key = any(line.lstrip(" -").startswith("? ") for line in text.split("\n"))
    if not long_key:
        assert typed(canonical.parse(text)) == typed(data)
    assert typed(load(text.encode()).data) == typed(data)
    check_shape(text)


def check_shape(text: str) -> None:
    assert "\r" not in text
    assert text.endswith("\n")
    for line in text.split("\n"):
        assert line.isprintable()
        assert not line.endswith(" ")


@settings(max_examples=300, deadline=None)
@given(texts)
def test_text_behind_a_key_of_yaml_1_1_is_text(text: str) -> None:
    assert yaml.safe_load(emit({"a": text})) == {"a": text}


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_real_number_stays_one(value: float) -> None:
    assert typed(yaml.safe_load(emit({"a": value}))) == typed({"a": value})


READ_AS_SOMETHING_ELSE = """
y Y yes Yes YES n N no No NO true True TRUE false False FALSE on On ON off Off OFF ~ null Null NULL = <<
0 -0 +12 012 0o14 0x1f 0b1010 1_000 685_230 190:20:30 1. .5 +.5 6.8523015e+5 1e3 12e03 -2E+05 190:20:30.15
e1 E+1 e12345 .e1 .inf -.inf +.Inf .INF .nan .NaN .NAN 2026-01-01 2026-12-14t21:59:43.10-05:00 - ? : --- ...
"""


@pytest.mark.parametrize("text", ["", *READ_AS_SOMETHING_ELSE.split()])
def test_what_any_yaml_takes_for_something_else_is_quoted(text: str) -> None:
    """The words of the type repository of YAML 1.1, of YAML 1.2.2 (10.3.2), and what readers make of them.

    Node's ``yaml``, for one, takes ``e1`` for a number in its 1.1 mode.
    """
    assert emit({"a": text}) == f'a: "{text}"\n'
    assert emit({text: "a"}) == f'"{text}": a\n'
