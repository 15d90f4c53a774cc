"""Edits of a human's file: the value is right, and every byte outside of the change is the old one."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitbus.codec import edit, editing, emit, load, remove
from gitbus.errors import Invalid, Refused
from tests.codec.values import texts, typed

BUS = """\
# our bus
apiVersion: gitbus/v1
kind: Bus
name: 'acme'   # in quotes

people:
- id: ada      # the first
  roles: [approver,reviewer]
  # no keys yet
  keys: []

sending:
    enabled: false # THE flag
    lease: 5m


channels: {}   # none yet
limits:
notes: |
  a text

# the end
"""


def changed(old: str, new: str, text: str = BUS) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


EDITS: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("sending", "enabled"), True, changed("false #", "true #")),
    (("name",), "it's", changed("'acme'", "'it''s'")),
    (("name",), 5, changed("'acme'", "5")),
    (("name",), ["x"], changed("name: 'acme'   # in quotes\n", "name:   # in quotes\n  - x\n")),
    (("kind",), "1e3", changed("kind: Bus", 'kind: "1e3"')),
    (("kind",), "two\nlines", changed("kind: Bus\n", "kind: |-\n  two\n  lines\n")),
    (("sending", "hold"), "0s", changed("lease: 5m\n", "lease: 5m\n    hold: 0s\n")),
    (("sending", "keys"), ["k"], changed("lease: 5m\n", "lease: 5m\n    keys:\n      - k\n")),
    (("sending",), {"x": 1}, changed("    enabled: false # THE flag\n    lease: 5m\n", "    x: 1\n")),
    (
        ("sending",),
        None,
        changed("sending:\n    enabled: false # THE flag\n    lease: 5m\n", "sending: null\n"),
    ),
    (("people", 0, "roles", 2), "operator", changed("reviewer]", "reviewer, operator]")),
    (("people", 0, "roles", 0), "a, b", changed("[approver", '["a, b"')),
    (("people", 0, "keys", 0), "k", changed("keys: []", "keys:\n    - k")),
    (
        ("people", 1),
        {"id": "bob", "roles": ["x"]},
        changed("  keys: []\n", "  keys: []\n- id: bob\n  roles:\n    - x\n"),
    ),
    (("people", 1), "bob", changed("  keys: []\n", "  keys: []\n- bob\n")),
    (
        ("people", 0),
        "bob",
        changed(
            "- id: ada      # the first\n  roles: [approver,reviewer]\n  # no keys yet\n  keys: []\n",
            "- bob\n",
        ),
    ),
    (
        ("channels", "news"),
        {"transport": "smtp"},
        changed("channels: {}   # none yet\n", "channels:   # none yet\n  news:\n    transport: smtp\n"),
    ),
    (("limits", "raw"), "1KiB", changed("limits:\n", "limits:\n  raw: 1KiB\n")),
    (("limits",), 3, changed("limits:\n", "limits: 3\n")),
    (("notes",), "short", changed("|\n  a text\n", "short\n")),
    (("review", "quorum"), 2, changed("  a text\n", "  a text\nreview:\n  quorum: 2\n")),
    (("notify", 0, "on", 0), "dead", changed("  a text\n", '  a text\nnotify:\n  - "on":\n      - dead\n')),
]


@pytest.fixture
def no_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an edit that splices cannot do fail."""

    def refuse(*_: Any) -> str:
        raise AssertionError("not spliced")

    monkeypatch.setattr(editing, "_round_trip", refuse)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(("path", "value", "expected"), EDITS, ids=range(len(EDITS)))
def test_edit(path: Any, value: Any, expected: str, ending: str, no_round_trip: None) -> None:
    assert edit(BUS.replace("\n", ending), path, value) == expected.replace("\n", ending)


OTHER_EDITS: list[tuple[str, tuple[str | int, ...], Any, str]] = [
    ("a: 1", ("b",), 2, "a: 1\nb: 2"),
    ("a: 1", ("a",), [2], "a:\n  - 2"),
    ("{}", ("a",), 1, '{"a": 1}'),
    ("{}  # x\n", ("a", 0), 1, '{"a": [1]}  # x\n'),
    ('{"a": 1}\n', ("b",), {"c": ["no"]}, '{"a": 1, "b": {"c": ["no"]}}\n'),
    ('{\n\t"a": 1,\n\t"b": {}\n}\n', ("c",), None, '{\n\t"a": 1,\n\t"b": {},\n\t"c": null\n}\n'),
    ('{\n\t"a": 1,\n\t"b": {}\n}\n', ("b", "x"), "é", '{\n\t"a": 1,\n\t"b": {"x": "é"}\n}\n'),
    ('{"a": "x"}', ("a",), "\u200b😀", '{"a": "\\u200b\\ud83d\\ude00"}'),
    (
        "a: {\n  b: 1, # one\n  c: 2 # two\n}\n",
        ("a", "d"),
        3,
        "a: {\n  b: 1, # one\n  c: 2, # two\n  d: 3\n}\n",
    ),
    ("a: {\n  b: 1,\n  c: 2, # two\n}\n", ("a", "d"), 3, "a: {\n  b: 1,\n  c: 2, # two\n  d: 3,\n}\n"),
    ("a: {\n  b: 1}\n", ("a", "d"), 3, "a: {\n  b: 1,\n  d: 3}\n"),
    ("a: [1, ]\n", ("a", 1), "http://x", 'a: [1, "http://x", ]\n'),
    ("a: [ ]\n", ("a", 0), {"b": 1}, "a:\n  - b: 1\n"),
    ("a: [{}]\n", ("a", 0, "b"), "x y", "a: [{b: x y}]\n"),
    ("a: [\n  # c\n]\n", ("a", 0), 1, "a: [1\n  # c\n]\n"),
    ("- a: 1\n".replace("- ", "x:\n  - "), ("x", 0, "b"), 2, "x:\n  - a: 1\n    b: 2\n"),
    ("a:\n  - - 1\n    - 2 # c\n", ("a", 0, 2), 3, "a:\n  - - 1\n    - 2 # c\n    - 3\n"),
    ("a:\n  -\n  - x\n", ("a", 0), "z", "a:\n  - z\n  - x\n"),
    ("a:\n  - # c\n  - x\n", ("a", 0), {"b": 1, "c": 2}, "a:\n  - b: 1 # c\n    c: 2\n  - x\n"),
    ("a: |+\n  x\n\nb: |+\n  y\n\n", ("c",), 1, "a: |+\n  x\n\nb: |+\n  y\n\nc: 1\n"),
    ("a: >2\n    x\n\n\nb: 1\n", ("a",), "z", "a: z\n\n\nb: 1\n"),
    ("a: x\n  y # c\nb: 1\n", ("a",), 2, "a: 2 # c\nb: 1\n"),
    ("a: x # c\nb: 1\n", ("a",), "t \nu", 'a: "t \\nu" # c\nb: 1\n'),
    ("a:\n- b\n# c\n", ("a",), {"x": 1}, "a:\n  x: 1\n# c\n"),
    ("? a\n: 1\n", ("a",), 2, "? a\n: 2\n"),
    ("a : 1\n'b' :   2\n", ("b",), 3, "a : 1\n'b' :   3\n"),
]


@pytest.mark.parametrize(("text", "path", "value", "expected"), OTHER_EDITS, ids=range(len(OTHER_EDITS)))
def test_edit_of_other_layouts(text: str, path: Any, value: Any, expected: str, no_round_trip: None) -> None:
    assert edit(text, path, value) == expected


REMOVALS: list[tuple[tuple[str | int, ...], str]] = [
    (("sending", "enabled"), changed("    enabled: false # THE flag\n", "")),
    (("sending", "lease"), changed("    lease: 5m\n", "")),
    (("sending",), changed("sending:\n    enabled: false # THE flag\n    lease: 5m\n", "")),
    (("people", 0, "id"), changed("id: ada      # the first\n  roles", "roles")),
    (("people", 0, "roles"), changed("  roles: [approver,reviewer]\n", "")),
    (("people", 0, "roles", 0), changed("approver,reviewer", "reviewer")),
    (("people", 0, "roles", 1), changed("approver,reviewer", "approver")),
    (
        ("people", 0),
        changed(
            "people:\n- id: ada      # the first\n  roles: [approver,reviewer]\n  # no keys yet\n  keys: []\n",
            "people: []\n",
        ),
    ),
    (("limits",), changed("limits:\n", "")),
    (("notes",), changed("notes: |\n  a text\n", "")),
    (("apiVersion",), changed("apiVersion: gitbus/v1\n", "")),
]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(("path", "expected"), REMOVALS, ids=range(len(REMOVALS)))
def test_remove(path: Any, expected: str, ending: str, no_round_trip: None) -> None:
    assert remove(BUS.replace("\n", ending), path) == expected.replace("\n", ending)


OTHER_REMOVALS: list[tuple[str, tuple[str | int, ...], str]] = [
    ("a: 1", ("a",), "{}"),
    ("a: 1\nb: 2", ("b",), "a: 1\n"),
    ("a: [1]", ("a", 0), "a: []"),
    ("a: {x: 1}", ("a", "x"), "a: {}"),
    ("a: [1, 2, 3,]", ("a", 2), "a: [1, 2,]"),
    ('{\n  "a": 1,\n  "b": 2\n}', ("b",), '{\n  "a": 1\n}'),
    ("a:\n  - - 1\n    - 2\n  - 3\n", ("a", 0, 0), "a:\n  - - 2\n  - 3\n"),
    ("a:\n  - 1\n  # of two\n  - 2\n  - 3\n", ("a", 1), "a:\n  - 1\n  # of two\n  - 3\n"),
    ("a:\n  -\n  - 2\n", ("a", 0), "a:\n  - 2\n"),
    ("a: |+\n  x\n\nb: 1\n", ("a",), "b: 1\n"),
]


@pytest.mark.parametrize(("text", "path", "expected"), OTHER_REMOVALS, ids=range(len(OTHER_REMOVALS)))
def test_remove_from_other_layouts(text: str, path: Any, expected: str, no_round_trip: None) -> None:
    assert remove(text, path) == expected


def test_an_edit_that_changes_nothing_returns_the_file_as_it_is() -> None:
    assert edit("a:   1.0\n", ("a",), 1.0) == "a:   1.0\n"
    assert edit("a:   1.0\n", ("a",), 1) == "a:   1\n"
    assert edit("a: 1\n", ("a",), True) == "a: true\n"


def test_what_cannot_be_spliced_is_done_by_the_round_trip() -> None:
    text = "# kept\na: [x: 1] # kept too\n"
    assert edit(text, ("a", 0, "y"), 2) == "# kept\na: [{x: 1, y: 2}] # kept too\n"


def test_the_round_trip_makes_parents_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editing, "Splicer", None)
    assert load(edit("# c\na:\n", ("a", "b", 0, "c"), 1).encode()).data == {"a": {"b": [{"c": 1}]}}
    assert load(edit("a: [1]\n", ("a", 1), 2).encode()).data == {"a": [1, 2]}
    assert load(remove("a: [1, 2]\n", ("a", 0)).encode()).data == {"a": [2]}


CANNOT = [
    (edit, "a: 1\n", ("a", "b"), 2),
    (edit, "a: [1]\n", ("a", "b"), 2),
    (edit, "a: [1]\n", ("a", 2), 2),
    (edit, "a: [1]\n", ("a", -1), 2),
    (edit, "a: {}\n", ("a", 0), 2),
    (remove, "a: 1\n", ("b",)),
    (remove, "a: [1]\n", ("a", 1)),
    (remove, "a: [1]\n", ("a", -1)),
    (remove, "a: 1\n", ("a", "b")),
]


@pytest.mark.parametrize(("how", "text", "path", "value"), [(*case, None)[:4] for case in CANNOT])
def test_refused(how: Any, text: str, path: Any, value: Any) -> None:
    with pytest.raises(Refused) as caught:
        how(text, path, value) if how is edit else how(text, path)
    assert caught.value.rule == "cannot-edit"
    assert "by hand" in str(caught.value.remedy)


def test_when_no_way_gives_what_was_meant_the_edit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editing, "Splicer", None)
    monkeypatch.setattr(editing, "_round_trip", lambda text, *_: text)
    with pytest.raises(Refused) as caught:
        edit("a: 1\n", ("a",), 2)
    assert caught.value.rule == "cannot-edit"


@pytest.mark.parametrize(
    ("text", "rule"), [("a: 1\na: 2\n", "duplicate-key"), ("a: &x 1\n", "alias"), ("\ud800", "not-utf8")]
)
def test_a_file_that_cannot_be_read_is_not_edited(text: str, rule: str) -> None:
    with pytest.raises(Invalid) as caught:
        edit(text, ("a",), 3)
    assert caught.value.rule == rule


def test_a_value_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(Invalid) as caught:
        edit("a: 1\n", ("a",), "\x1b")
    assert caught.value.rule == "control-character"


# --- any layout: a document is put together from pieces, so that the test knows where each one stands


class Piece(NamedTuple):
    """A text, what it says, and where each scalar in it stands."""

    text: str
    data: Any
    spots: tuple[tuple[tuple[str | int, ...], int, int], ...]


NAMES = ["a", "b-c", "d_e", "no", "f g", "é"]
SCALARS = [
    ("1", 1),
    ("true", True),
    ("~", None),
    ("plain text", "plain text"),
    ("no", "no"),
    ("'it''s'", "it's"),
    ('"q\\"\\n"', 'q"\n'),
    ("0x1f", 31),
    ("2026-01-01", "2026-01-01"),
    ("http://a/#b", "http://a/#b"),
    ("[]", []),
    ("{ }", {}),
]
IN_FLOW = [one for one in SCALARS if "/" not in one[0]]
KEYS = {"no": "'no'", "f g": '"f g"'}
COMMENTS = ["", " # c", "   # it's: [a] {b} - c"]
BETWEEN = ["", "", "\n", "  # alone\n", "\n      # odd: 'one\n\n"]
AFTER_TEXT = ["", "", "\n", "# alone\n", "\n# odd: 'one\n\n"]


@st.composite
def flow_pieces(draw: st.DrawFn, depth: int) -> Piece:
    if depth == 0 or draw(st.booleans()):
        text, data = draw(st.sampled_from(IN_FLOW))
        return Piece(text, data, (((), 0, len(text)),))
    gap = draw(st.sampled_from(["", " ", "\n      "]))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    is_map = draw(st.booleans())
    text, spots = ("{" if is_map else "[") + gap, []
    data: Any = {} if is_map else []
    for number, name in enumerate(names):
        inner = draw(flow_pieces(depth - 1))
        step: str | int = name if is_map else number
        text += f"{KEYS.get(name, name)}: " if is_map else ""
        spots += [((step, *loc), start + len(text), end + len(text)) for loc, start, end in inner.spots]
        text += inner.text + ("," + (gap or " ") if number < len(names) - 1 else "")
        if is_map:
            data[name] = inner.data
        else:
            data.append(inner.data)
    return Piece(text + gap + ("}" if is_map else "]"), data, tuple(spots))


@st.composite
def block_pieces(draw: st.DrawFn, depth: int, column: int) -> Piece:
    """Return lines whose first one begins at ``column`` and is not indented yet."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    is_map = depth == 3 or draw(st.booleans())
    text = ""
    spots: list[tuple[tuple[str | int, ...], int, int]] = []
    data: Any = {} if is_map else []
    for number, name in enumerate(names):
        text += " " * column if number else ""
        gap = draw(st.sampled_from([" ", " ", "   "]))
        step: str | int = name if is_map else number
        text += f"{KEYS.get(name, name)}:" if is_map else "-"
        inner, text = draw(below(text, gap, depth, column, is_map=is_map))
        spots += [((step, *loc), start, end) for loc, start, end in inner.spots]
        is_text = text.rstrip("\n").endswith("# z")
        text += draw(st.sampled_from(AFTER_TEXT if is_text else BETWEEN))
        if is_map:
            data[name] = inner.data
        else:
            data.append(inner.data)
    return Piece(text, data, tuple(spots))


@st.composite
def below(
    draw: st.DrawFn, text: str, gap: str, depth: int, column: int, *, is_map: bool
) -> tuple[Piece, str]:
    """Return what stands behind a colon or dash, and the text with it."""
    comment = draw(st.sampled_from(COMMENTS))
    kind = draw(st.sampled_from(["scalar", "flow", "block", "text"] if depth else ["scalar"]))
    if kind == "text":
        chomp = draw(st.sampled_from(["", "-"]))
        pad = " " * (column + draw(st.integers(1, 4)))
        piece = Piece("", "x: 'y\n\n# z" + ("\n" if not chomp else ""), ())
        return piece, f"{text}{gap}|{chomp}{comment}\n{pad}x: 'y\n\n{pad}# z\n"
    if kind == "block":
        further = column + draw(st.integers(1, 4))
        inner = draw(block_pieces(depth - 1, further))
        at = f"{text}{comment}\n{' ' * further}"
        if not is_map and draw(st.booleans()):
            inner = draw(block_pieces(depth - 1, column + 1 + len(gap)))
            at = text + gap
        return _moved(inner, len(at)), at + inner.text
    inner = draw(flow_pieces(depth)) if kind == "flow" else _scalar(*draw(st.sampled_from(SCALARS)))
    at = text + gap
    return _moved(inner, len(at)), f"{at}{inner.text}{comment}\n"


def _scalar(text: str, data: Any) -> Piece:
    return Piece(text, data, (((), 0, len(text)),))


def _moved(piece: Piece, by: int) -> Piece:
    return piece._replace(spots=tuple((loc, start + by, end + by) for loc, start, end in piece.spots))


ANY_LAYOUT = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NEW = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
FILLED = st.sampled_from([[1], ["a b", {"c": [2]}], {"x": 1}, {"x": {"y": ["z\nw", "no"]}, "n": None}])


@pytest.mark.usefixtures("no_round_trip")
@ANY_LAYOUT
@given(block_pieces(3, 0), st.sampled_from(["\n", "\r\n"]), st.data())
def test_any_scalar_of_any_layout_is_replaced_and_nothing_else(
    piece: Piece, ending: str, draw: st.DataObject
) -> None:
    assert typed(load(piece.text.encode()).data) == typed(piece.data)
    if not piece.spots:
        return
    path, start, end = draw.draw(st.sampled_from(piece.spots))
    value = draw.draw(NEW)
    text = piece.text.replace("\n", ending)
    new = edit(text, path, value)
    assert value_at(load(new.encode()).data, path) == typed(value)
    before = piece.text[:start].replace("\n", ending)
    after = piece.text[end:].replace("\n", ending)
    assert new.startswith(before)
    if isinstance(value, str) and "\n" in value:  # may stand in lines of its own, below the comment
        comment, _, lines = after.partition(ending)
        assert comment in new
        assert new.endswith(lines)
    else:
        assert new.endswith(after)
    assert len(new) >= len(before) + len(after)


@pytest.mark.usefixtures("no_round_trip")
@ANY_LAYOUT
@given(block_pieces(3, 0), st.data())
def test_any_edit_of_any_layout_keeps_every_line_that_it_does_not_change(
    piece: Piece, draw: st.DataObject
) -> None:
    path = draw.draw(st.sampled_from(all_paths(piece.data)))
    value = draw.draw(NEW | FILLED)
    try:
        new = edit(piece.text, path, value)
    except Refused:
        pytest.fail(f"refused: {piece.text!r} {path} {value!r}")
    assert value_at(load(new.encode()).data, path) == typed(value)
    assert without(load(new.encode()).data, path) == without(piece.data, path)
    if not value_there(piece.data, path) and value_at(piece.data, path[:-1])[1]:
        assert is_inserted(piece.text, new)


@pytest.mark.usefixtures("no_round_trip")
@ANY_LAYOUT
@given(block_pieces(3, 0), st.data())
def test_any_removal_from_any_layout(piece: Piece, draw: st.DataObject) -> None:
    paths = [path for path in all_paths(piece.data) if path and value_there(piece.data, path)]
    path = draw.draw(st.sampled_from(paths))
    new = remove(piece.text, path)
    assert typed(load(new.encode()).data) == without(piece.data, path)
    if "{}" not in new and "[]" not in new:
        assert is_inserted(new, piece.text)


def is_inserted(short: str, long: str) -> bool:
    """Say whether the long text is the short one with something put in, at one or two places."""
    rest = iter(long)
    return all(char in rest for char in short)


def value_at(data: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        data = data[step]
    return typed(data)


def value_there(data: Any, path: tuple[str | int, ...]) -> bool:
    try:
        value_at(data, path)
    except LookupError:
        return False
    return True


def without(data: Any, path: tuple[str | int, ...]) -> Any:
    """Return the data without one part, with types."""
    if value_there(data, path):
        copy = load(emit(data).encode()).data
        inner = copy
        for step in path[:-1]:
            inner = inner[step]
        del inner[path[-1]]
        return typed(copy)
    return typed(data)


def all_paths(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return every path there is, and for each collection one that is not there yet."""
    found: list[tuple[str | int, ...]] = []
    if isinstance(data, dict):
        found.append((*path, "new"))
        for key, value in data.items():
            found += [(*path, key), *all_paths(value, (*path, key))]
    elif isinstance(data, list):
        found.append((*path, len(data)))
        for index, value in enumerate(data):
            found += [(*path, index), *all_paths(value, (*path, index))]
    return found
