"""Suspicious reading: what a scalar means, what is refused and where, and that refusing is cheap."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml.reader import Reader

from gitbus.codec import LIMIT, emit, jsontext, load
from gitbus.codec import loading as loading_module
from gitbus.codec import nodes as nodes_module
from gitbus.codec.nodes import MAX_PARTS, compose
from gitbus.errors import Invalid
from tests.codec.values import mappings, typed, values

CORE = [
    ("no", "no"),
    ("on", "on"),
    ("y", "y"),
    ("2026-01-01", "2026-01-01"),
    ("2026-11-30T20:04:10Z", "2026-11-30T20:04:10Z"),
    ("12:30:45", "12:30:45"),
    ("1_000", "1_000"),
    ("0b1", "0b1"),
    ("-0o7", "-0o7"),
    ("=", "="),
    ("NaN", "NaN"),
    ("tRUE", "tRUE"),
    ("٣", "٣"),
    ("012", 12),
    ("+12", 12),
    ("-0", 0),
    ("0o14", 12),
    ("0x1F", 31),
    ("1e3", 1000.0),
    ("1.", 1.0),
    (".5", 0.5),
    ("-1.5E-3", -0.0015),
    ("1.0", 1.0),
    ("-0.0", -0.0),
    ("true", True),
    ("FALSE", False),
    ("~", None),
    ("NULL", None),
    ("", None),
    ("# x", None),
    ("'1'", "1"),
    ('"1"', "1"),
    ('"\\ud83d\\ude00"', "😀"),
    ('"a\\\n  b"', "ab"),
    ("a\n  b\n\n  c", "a b\nc"),
    (">\n  a\n  b\n", "a b\n"),
    ("|\n  1\n", "1\n"),
    ("a\u2028b", "a\u2028b"),
    ("'a\x85b \u2029'", "a\x85b \u2029"),
    ("[1, a b, {c: d}, ]", [1, "a b", {"c": "d"}]),
]


@pytest.mark.parametrize(("written", "value"), CORE, ids=range(len(CORE)))
def test_core_schema(written: str, value: Any) -> None:
    assert typed(load(f"a: {written}".encode()).data) == typed({"a": value})


READABLE = [
    (b"%YAML 1.2\n---\na: 1\n...\n", {"a": 1}),
    (b"%YAML 1.2 # so\n--- # so\na: 1", {"a": 1}),
    (b"# c\n--- {a: 1}\n# d\n", {"a": 1}),
    (b"a: 1\r\nb:\r\n  - |\r\n    x\r\n    y\r\n", {"a": 1, "b": ["x\ny\n"]}),
    (b'{\n\t"a":\t1,\n\t"b":[\t]\n}\n', {"a": 1, "b": []}),
    (b' \n{"a": {"b": [1, 1.0, "x\\u0085\\/", null, true]}}', {"a": {"b": [1, 1.0, "x\x85/", None, True]}}),
    ('{"a": "x\u2028"}'.encode(), {"a": "x\u2028"}),
    (b"{}", {}),
    (b"{a: 1}", {"a": 1}),
    (b'{"a": "b" # no JSON\n}', {"a": "b"}),
    (b"? a\n: 1\n", {"a": 1}),
    (b"<<: {a: 1}\n", {"<<": {"a": 1}}),
    (b"a: |\n  <<<<<<< x\n  =======\n  >>>>>>> y\n", {"a": "<<<<<<< x\n=======\n>>>>>>> y\n"}),
    ("a: \ue000\u2028\ue001\u2029\x85\ue002\n".encode(), {"a": "\ue000\u2028\ue001\u2029\x85\ue002"}),
]


@pytest.mark.parametrize(("text", "data"), READABLE, ids=range(len(READABLE)))
def test_readable(text: bytes, data: Any) -> None:
    assert typed(load(text).data) == typed(data)


REFUSED = [
    (b"", "empty", 1, 1),
    (b"# only\n", "empty", 1, 1),
    (b"---\n...\n", "empty", 1, 1),
    (b"a\n", "not-a-mapping", 1, 1),
    (b"# l\n- a\n", "not-a-mapping", 2, 1),
    (b"[1]", "not-a-mapping", 1, 1),
    (b"null", "not-a-mapping", 1, 1),
    (b"a: 1\nb: \xff\n", "not-utf8", 2, 4),
    ("é: 1\né: ".encode() + b"\xe9\n", "not-utf8", 2, 4),
    (b"a: \xed\xa0\x80", "not-utf8", 1, 4),
    (b"\xef\xbb\xbfa: 1\n", "byte-order-mark", 1, 1),
    (b"\xff\xfea\x00", "byte-order-mark", 1, 1),
    (b"a: 1\nb:\n  c: 1\n  d: 1\n  c: 2\n", "duplicate-key", 5, 3),
    (b"{a: 1, 'a': 2}", "duplicate-key", 1, 8),
    (b'{"a": 1,\n "\\u0061": 2}', "duplicate-key", 2, 2),
    (b'a: 1\n"a": 2\n', "duplicate-key", 2, 1),
    (b"a: 1\nb: &x 1\n", "alias", 2, 4),
    (b"a: *x\n", "alias", 1, 4),
    (b"<<: *x\n", "alias", 1, 5),
    (b"a:\n  - &x {}\n", "alias", 2, 5),
    (b"&a a: 1\n", "alias", 1, 1),
    (b"a: !!str 1\n", "tag", 1, 4),
    (b"a: ! 1\n", "tag", 1, 4),
    (b"a: !x {b: 1}\n", "tag", 1, 4),
    (b"!x\na: 1\n", "tag", 1, 1),
    (b"a: 1\n---\nb: 1\n", "many-documents", 2, 1),
    (b"a: 1\n...\n---\n", "many-documents", 3, 1),
    (b"a: " + b"[" * 63 + b"]" * 63, None, 0, 0),
    (b"a: " + b"[" * 64 + b"]" * 64, "too-deep", 1, 67),
    (b'{"a":' + b"[" * 64 + b"]" * 64 + b"}", "too-deep", 1, 69),
    (b"a:\n" + b"- " * 64 + b"1\n", "too-deep", 2, 127),
    (b"a: .inf\n", "non-finite", 1, 4),
    (b"a: [1, -.Inf]\n", "non-finite", 1, 8),
    (b"a: .NaN\n", "non-finite", 1, 4),
    (b"a: 1e400\n", "non-finite", 1, 4),
    (b'{"a": NaN}', "non-finite", 1, 7),
    (b'{"a": -Infinity}', "non-finite", 1, 7),
    (b'{"a":\n1e999}', "non-finite", 2, 1),
    (b"a: 1" + b"0" * 4300, "number-too-long", 1, 4),
    (b"a: 0x1" + b"0" * 4300, "number-too-long", 1, 4),
    (b'{"a": 1' + b"0" * 4300 + b"}", "number-too-long", 1, 7),
    (b"a: 1\nb: x\x07y\n", "control-character", 2, 5),
    (b"a: \x00", "control-character", 1, 4),
    (b'a: "x\\x07"\n', "control-character", 1, 4),
    (b'a:\n  - "\\e[2J"\n', "control-character", 2, 5),
    (b'a: "\\r"\n', "control-character", 1, 4),
    (b'"\\0": 1\n', "control-character", 1, 1),
    (b'{"a": "\\u0000"}', "control-character", 1, 7),
    (b'{"a": "\\ud800x"}', "control-character", 1, 7),
    (b'a: "\\ude00\\ud83d"', "control-character", 1, 4),
    (b'a: "\\ud83d\\ude00\\ud83d"', "control-character", 1, 4),
    ("a: \x9b\n".encode(), "control-character", 1, 4),
    (b"a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> x\n", "conflict-markers", 2, 1),
    (b"a: 1\r\n=======\r\nb: 2\r\n", "conflict-markers", 2, 1),
    (b"a: 1\n||||||| base\n", "conflict-markers", 2, 1),
    (b'{"a": 1,\n>>>>>>> x\n"b": 2}', "conflict-markers", 2, 1),
    (b"1: a\n", "key-not-text", 1, 1),
    (b"a:\n  true: 1\n", "key-not-text", 2, 3),
    (b"a: {null: 1}\n", "key-not-text", 1, 5),
    (b": 1\n", "key-not-text", 1, 1),
    (b"? [a]\n: 1\n", "key-not-text", 1, 3),
    (b"{[a]: 1}\n", "key-not-text", 1, 2),
    (b"%YAML 1.1\n---\na: 1\n", "directive", 1, 1),
    (b"# c\n%TAG ! x\n---\na: 1\n", "directive", 2, 1),
    (b"%FOO\n---\na: 1\n", "directive", 1, 1),
    (b"a: 1\n\tb: 2\n", "syntax", 2, 1),
    (b"a: b: c\n", "syntax", 1, 5),
    (b"a: 1\nb\n", "syntax", 3, 1),
    (b"a: @x\n", "syntax", 1, 4),
    (b"a: 'x\n", "syntax", 2, 1),
    (b"a: [1\nb: 2\n", "syntax", 2, 2),
    (b"a: 1\n b: 2\n", "syntax", 2, 3),
    (b'a: 1\nb: "\\UFFFFFFFF"\n', "syntax", 2, 1),
    (b'a: "\\q"\n', "syntax", 1, 6),
    (b'{"a": 1]', "syntax", 1, 8),
]


@pytest.mark.parametrize(("text", "rule", "line", "column"), REFUSED, ids=range(len(REFUSED)))
def test_refused_with_its_place(text: bytes, rule: str | None, line: int, column: int) -> None:
    if rule is None:
        assert load(text).data
        return
    with pytest.raises(Invalid) as caught:
        load(text, path="x.yaml")
    error = caught.value
    assert (error.rule, error.line, error.column) == (rule, line, column)
    assert error.place == f"x.yaml:{line}:{column}"
    assert error.message.isprintable()
    assert error.remedy


def test_too_large_is_refused_before_anything_is_read() -> None:
    with pytest.raises(Invalid) as caught:
        load(b"\xff" * 101, path="x.yaml", limit=100)
    assert (caught.value.rule, caught.value.place) == ("too-large", "x.yaml")
    assert load(b"a: " + b"x" * 97, limit=100).data == {"a": "x" * 97}


ATTACKS = {
    "one long line": (b"a: " + b"x" * (10 << 20), 0),
    "invalid at the end": (b'{"a": "' + b"x" * (LIMIT - 10) + b'"\xff}', 0),
    "digits": (b'{"a": ' + b"9" * (LIMIT - 7) + b"}", 0),
    "opening brackets": (b"[" * LIMIT, 100),
    "opening braces": (b"{" * LIMIT, 100),
    "JSON's brackets": (b'{"a":' + b"[" * (LIMIT // 2 - 3) + b"]" * (LIMIT // 2 - 3) + b"}", 100),
    "JSON's braces": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 400),
    "dashes": (b"- " * (LIMIT // 2), 200),
    "questions": (b"? " * (LIMIT // 2), 200),
    "anchors": (b"&a " * (LIMIT // 3), 1100),
    "billion laughs": (b"a: &a [x, x]\n" + b"b: [*a, *a]\n" * 20_000, 20),
    "deep by indentation": (b"".join(b" " * n + b"a:\n" for n in range(1000)), 3000),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_refusing_an_attack_reads_little_of_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, most = ATTACKS[name]
    read = 0
    forward = Reader.forward

    def counted(reader: Reader, length: int = 1) -> None:
        nonlocal read
        read += length
        forward(reader, length)

    monkeypatch.setattr(Reader, "forward", counted)
    with pytest.raises(Invalid):
        load(text)
    assert read <= most


@settings(max_examples=80, deadline=None)
@given(mappings, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_reads_as_json(data: dict[str, Any], indent: Any, ascii_only: bool) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    if "\ufffe" in text:
        return  # no file may hold it as it is
    assert typed(load(text.encode()).data) == typed(data)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("a1:-?,[]{}#&*!|>'\"%@\\ \n\t\r<=.~\x85\ufeffé\x00"), max_size=30))
def test_no_text_does_anything_but_be_read_or_refused(text: str) -> None:
    with contextlib.suppress(Invalid):
        data = load(text.encode()).data
        assert typed(load(emit(data).encode()).data) == typed(data)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40))
def test_no_bytes_do_anything_but_be_read_or_refused(text: bytes) -> None:
    with contextlib.suppress(Invalid):
        assert isinstance(load(text).data, dict)


@settings(max_examples=100, deadline=None)
@given(mappings, st.data())
def test_a_changed_canonical_text_is_never_misread(data: dict[str, Any], draw: st.DataObject) -> None:
    """The fast parser is believed only where the careful reader would say the same."""
    text = emit(data)
    at = draw.draw(st.integers(0, len(text)))
    text = text[:at] + draw.draw(st.text(" -:\"\\|an1\n#'", min_size=1, max_size=3)) + text[at:]
    fast = loading_module.guessed(text)
    if fast is not None and loading_module._is_written_so(fast, text):
        assert typed(loading_module.compose(text, "").root.data()) == typed(fast)


PLACED = b"""# a comment
apiVersion: gitbus/v1
tasks:
  mail:
    needs: [write, {task: image}]
    item:   # below
      to:
      - a@x.org
      -   b@x.org
    prompt: |
      text
    empty:
"""

PLACES = [
    ((), 2, 1, 2, 1),
    (("apiVersion",), 2, 13, 2, 1),
    (("tasks",), 3, 1, 3, 1),
    (("tasks", "mail", "needs"), 5, 12, 5, 5),
    (("tasks", "mail", "needs", 1), 5, 20, 5, 20),
    (("tasks", "mail", "needs", 1, "task"), 5, 27, 5, 21),
    (("tasks", "mail", "needs", 7), 5, 12, 5, 12),
    (("tasks", "mail", "item"), 6, 5, 6, 5),
    (("tasks", "mail", "item", "to", 0), 8, 9, 8, 9),
    (("tasks", "mail", "item", "to", 1), 9, 11, 9, 11),
    (("tasks", "mail", "item", "Template", "to"), 7, 7, 7, 7),
    (("tasks", "mail", "item", "missing"), 6, 5, 6, 5),
    (("tasks", "mail", "[key]"), 4, 3, 4, 3),
    (("tasks", "mail", "prompt"), 10, 13, 10, 5),
    (("tasks", "mail", "empty"), 12, 5, 12, 5),
    (("nothing", 3), 2, 1, 2, 1),
]


@pytest.mark.parametrize(("loc", "line", "column", "key_line", "key_column"), PLACES)
def test_place(loc: tuple[str | int, ...], line: int, column: int, key_line: int, key_column: int) -> None:
    loaded = load(PLACED)
    assert loaded.place(loc) == (line, column)
    if loc and loc[-1] in ("apiVersion", "tasks", "needs", "task", "item", "to", "prompt", "empty"):
        assert loaded.place(loc, key=True) == (key_line, key_column)


def test_places_of_canonical_text_and_of_json() -> None:
    data = {"a": 1, "b": {"c": [1, {"d": 2}]}}
    assert load(emit(data).encode()).place(("b", "c", 1, "d")) == (5, 10)
    assert load(json.dumps(data, indent="\t").encode()).place(("b", "c", 1, "d")) == (7, 10)


def test_canonical_text_is_read_without_the_careful_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(loading_module, "compose")
    data = {"a": ["x\ny", {"b": 'q"\n ', "c": 1.5}], "no": "no", "e": {}}
    assert load(emit(data).encode()).data == data


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text("ab", max_size=2), values, max_size=3))
def test_a_comment_changes_no_value(data: dict[str, Any]) -> None:
    assert typed(load(b"# x\n" + emit(data).encode()).data) == typed(data)


# --- what it costs


FAULTY = [
    b'{"a": 1, "a": 2}',
    b'{"a": {"b": 1, "b": 1}}',
    b'{"a": NaN}',
    b'{"a": -Infinity}',
    b'{"a": 1e999}',
    b'{"a": ' + b"9" * 4301 + b"}",
    b'{"a": "\\u0000"}',
    b'{"\\u0007": 1}',
    b'{"a": "\\ud83d"}',
    b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}",
    b'{"a": "x\n<<<<<<< HEAD"}',
    b'{"a": 1} {"b": 2}',
    b'{"a": 1',
    b'{"a": 1]',
]


@pytest.mark.parametrize("text", FAULTY, ids=range(len(FAULTY)))
def test_faulty_json_is_left_to_the_reader_that_tells_the_place(text: bytes) -> None:
    assert jsontext.data(text.decode()) is None
    with pytest.raises(Invalid) as caught:
        load(text, path="x.yaml")
    assert caught.value.line >= 1
    assert caught.value.remedy


@given(mappings, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_is_read_alike_with_and_without_places(
    data: dict[str, Any], indent: Any, ascii_only: bool
) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    try:
        loaded = load(text.encode("utf-8", "surrogatepass"))
    except Invalid:
        return
    assert typed(loaded.data) == typed(compose(text, "").root.data())


def test_json_as_large_as_a_record_may_be_is_read_without_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading_module, "compose", None)
    text = b'{"a":[' + b"0," * (LIMIT // 2 - 6) + b"0]}"
    assert len(load(text).data["a"]) == LIMIT // 2 - 5


SMALL_PARTS = {
    "a list": b"a:\n" + b"- b\n" * MAX_PARTS,
    "brackets": b"a: [" + b"b," * MAX_PARTS + b"b]\n",
    "no quite JSON": b'{"a": [' + b"1," * MAX_PARTS + b"1]",
    "mappings": b"a:\n" + b"- b:\n    c: d\n" * MAX_PARTS,
}


@pytest.mark.parametrize(
    "name",
    [name if name == "brackets" else pytest.param(name, marks=pytest.mark.long) for name in SMALL_PARTS],
)
def test_more_parts_than_are_worth_reading(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0
    check = nodes_module._check_node

    def counted(*arguments: Any) -> None:
        nonlocal seen
        seen += 1
        check(*arguments)

    monkeypatch.setattr(nodes_module, "_check_node", counted)
    with pytest.raises(Invalid) as caught:
        load(SMALL_PARTS[name], path="x.yaml")
    assert caught.value.rule == "too-many-parts"
    assert "JSON" in (caught.value.remedy or "")
    assert seen == MAX_PARTS + 1


@pytest.mark.long
def test_what_gitbus_wrote_may_have_more_parts_and_says_roughly_where() -> None:
    loaded = load(emit({"a": ["b"] * (MAX_PARTS + 1)}).encode())
    assert len(loaded.data["a"]) == MAX_PARTS + 1
    assert loaded.place(("a", 7)) == (1, 1)
    assert load(emit({"a": ["b"] * 9}).encode()).place(("a", 7)) == (9, 5)
