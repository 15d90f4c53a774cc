"""The schema of a task's outputs: what it may be, what an instance breaks, and that it always ends."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gitbus import schema

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 1.0, "", "a", "ab"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=8,
)
SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {},
            {"type": "string"},
            {"type": ["integer", "null"]},
            {"minLength": 1},
            {"pattern": "^a+$"},
            {"enum": [1, "a", None]},
            {"const": 1.0},
            {"uniqueItems": True},
            {"multipleOf": 2},
        ]
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"items": inner}),
        st.fixed_dictionaries(
            {"properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)}
        ),
        st.fixed_dictionaries({"patternProperties": st.fixed_dictionaries({"^[ab]": inner})}),
        st.fixed_dictionaries({"additionalProperties": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries(
            {"allOf": st.lists(inner, min_size=1, max_size=2), "unevaluatedProperties": st.just(False)}
        ),
    ),
    max_leaves=5,
)


@settings(deadline=None, derandomize=True)
@given(JSON, SCHEMAS)
def test_it_judges_as_the_library_does(instance: Any, given_schema: dict[str, Any]) -> None:
    if schema.check(given_schema) is None:
        assert (schema.errors(instance, given_schema) == []) == Draft202012Validator(given_schema).is_valid(
            instance
        )
    else:
        assert "patternProperties" in json.dumps(given_schema)
        assert "unevaluatedProperties" in json.dumps(given_schema)


def test_an_error_has_its_place_and_is_bounded() -> None:
    made = {"properties": {"list": {"items": {"type": "integer"}}}}
    assert schema.errors({"list": [1, "x"]}, made) == [(("list", 1), "'x' is not of type 'integer'")]
    found = schema.errors({"list": ["y" * 5000] * 100}, made)
    assert len(found) == schema.MAX_ERRORS
    assert all(len(message) <= schema.MAX_MESSAGE for _, message in found)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ([], "mapping"),
        (True, "mapping"),
        ({"type": "strin"}, "type: "),
        ({"properties": {"a": {"required": "b"}}}, "properties.a.required: "),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "dialect"),
        ({"$schema": 7}, "dialect"),
        ({"$ref": "https://example.com/schema.json"}, "leads to nothing"),
        ({"$ref": "file:///etc/passwd"}, "leads to nothing"),
        ({"properties": {"a": {"$ref": "#/$defs/missing"}}}, "leads to nothing"),
        ({"$dynamicRef": "#missing"}, "leads to nothing"),
        ({"pattern": "("}, "no regular expression"),
        ({"properties": {"a": {"pattern": "(a+)+$"}}}, "for ever"),
        ({"patternProperties": {"(a|aa)+$": {}}}, "for ever"),
        ({"const": float("nan")}, "JSON"),
        ({"const": {1, 2}}, "JSON"),
        ({"allOf": [{"patternProperties": {"a": {}}}], "unevaluatedProperties": False}, "do not go together"),
    ],
)
def test_what_is_no_schema_is_told(made: Any, words: str) -> None:
    assert words in (schema.check(made) or "")
    if isinstance(made, dict):
        [(place, message)] = schema.errors({}, made)
        assert place == ()
        assert words in message


@pytest.mark.parametrize(
    "made",
    [
        {},
        {"properties": {"pattern": {"type": "string"}, "$ref": {"type": "string"}}},
        {"$defs": {"a": {"$anchor": "x"}}, "items": {"$ref": "#x"}},
        {
            "$id": "https://example.com/a",
            "$defs": {"b": {"$id": "b", "type": "string"}},
            "items": {"$ref": "b"},
        },
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        {"$schema": schema.DIALECT, "format": "email", "x-own": [1]},
        {"examples": [{"$ref": "nowhere"}], "const": {"pattern": "("}},
    ],
)
def test_what_is_a_schema_is_taken(made: dict[str, Any]) -> None:
    assert schema.check(made) is None


def test_nothing_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert schema.errors({}, {"$ref": "http://127.0.0.1:1/x"}) != []


DOUBLING = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}


@pytest.mark.parametrize(
    ("instance", "made"),
    [
        ("x", {"$ref": "#"}),
        ("x", {"$defs": {**DOUBLING, "d40": {"type": "string"}}, "$ref": "#/$defs/d0"}),
        ("a" * 500_000, {"pattern": "[a-z]+[0-9]"}),
        ([{"n": n % 2} for n in range(60_000)], {"uniqueItems": True}),
        ({"a" * 100_000: 1}, {"patternProperties": {"a*a*b": False}}),
        ({"a" * 100_000: 1}, {"patternProperties": {"a*a*b": {}}, "additionalProperties": False}),
        ([1] * 40_000, {"items": {"type": "integer"}}),
        (1, {"enum": list(range(40_000))}),
    ],
)
def test_it_always_ends_and_an_answer_that_is_not_known_is_a_no(
    instance: Any, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "MAX_STEPS", 20_000)
    begun = time.process_time()
    assert schema.errors(instance, made) != []
    assert time.process_time() - begun < 10


def test_numbers_that_are_the_same_are_not_unique_and_true_is_not_one() -> None:
    assert schema.errors([1, 1.0], {"uniqueItems": True}) != []
    assert schema.errors([{"a": [1]}, {"a": [1.0]}], {"uniqueItems": True}) != []
    assert schema.errors([1, True, 0, False, "1", None], {"uniqueItems": True}) == []
