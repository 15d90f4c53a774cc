"""References are data: they keep values as they are, never evaluate, and say where they lead to nothing."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitbus.expressions import Unresolved, parse, references, resolve

names = st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=10,
)


def ways(value: Any) -> list[str]:
    """Return the steps to everything inside a value."""
    if isinstance(value, dict):
        return [""] + [f".{key}{rest}" for key, inner in value.items() for rest in ways(inner)]
    if isinstance(value, list):
        return [""] + [f"[{n}]{rest}" for n, inner in enumerate(value) for rest in ways(inner)]
    return [""]


def at(value: Any, way: str) -> Any:
    for step in parse("root" + way).steps:
        value = value[step]
    return value


@given(json_values, st.data())
def test_a_reference_alone_keeps_the_value(value: Any, data: st.DataObject) -> None:
    way = data.draw(st.sampled_from(ways(value)))
    found = resolve(f"${{root{way}}}", {"root": value})
    assert (found, type(found)) == (at(value, way), type(at(value, way)))


@given(json_values, texts.filter(bool), texts)
def test_a_reference_inside_a_text_is_text(value: Any, before: str, after: str) -> None:
    escape = (before.replace("$", "_"), after.replace("{", "_"))
    found = resolve(f"{escape[0]}${{root}}{escape[1]}", {"root": value})
    shown = "" if value is None else value if isinstance(value, str) else None
    assert found.startswith(escape[0])
    assert found.endswith(escape[1])
    inner = found[len(escape[0]) : len(found) - len(escape[1])]
    assert inner == shown if shown is not None else json.loads(inner) == value


@given(json_values)
def test_what_came_in_by_a_reference_is_not_resolved_again(value: Any) -> None:
    text = json.dumps(value) + "${goal.inputs.secret}"
    assert resolve("${root}", {"root": text, "goal": {"inputs": {"secret": "s"}}}) == text
    assert resolve("x${root}", {"root": text, "goal": {"inputs": {"secret": "s"}}}) == "x" + text


@given(json_values)
def test_escaped_is_literal(value: Any) -> None:
    def escaped(inner: Any) -> Any:
        if isinstance(inner, str):
            return inner.replace("${", "$${")
        if isinstance(inner, dict):
            return {key: escaped(one) for key, one in inner.items()}
        return [escaped(one) for one in inner] if isinstance(inner, list) else inner

    assert resolve(escaped(value), {}) == value
    assert list(references(escaped(value))) == []


@given(texts)
def test_any_text_resolves_or_says_why(text: str) -> None:
    for way in (text, "${" + text, "${" + text + "}"):
        with contextlib.suppress(Unresolved):
            assert isinstance(resolve(way, {"goal": {"id": "g"}}), (str, dict))


@pytest.mark.parametrize(
    "bad",
    [
        "${",
        "${}",
        "${a",
        "${a.}",
        "${a..b}",
        "${a[-1]}",
        "${a[x]}",
        "${a b}",
        "${__import__('os')}",
        "${a.b()}",
    ],
)
def test_no_reference(bad: str) -> None:
    for act in (lambda: list(references({"x": [bad]})), lambda: resolve({"x": [bad]}, {"a": {"b": 1}})):
        with pytest.raises(Unresolved):
            act()


@pytest.mark.parametrize("way", [".x", "[2]", "[0].x", ".upper", ".__class__"])
def test_leads_to_nothing(way: str) -> None:
    with pytest.raises(Unresolved):
        resolve(f"${{a{way}}}", {"a": ["one", "two"]})


def test_an_optional_need_that_gave_nothing_is_null() -> None:
    assert resolve({"all": "${a.outputs.x[3]}", "in": "<${a.outputs}>"}, {"a": None}) == {
        "all": None,
        "in": "<>",
    }
