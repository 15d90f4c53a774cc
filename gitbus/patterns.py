"""How costly a regular expression can get, so that a stranger's text cannot stall who checks it.

Python's ``re`` backtracks. Rules: a repeat inside a repeat must be told apart by a fixed character
that the inner one cannot match, back references and look-arounds are refused, and the number of
unbounded repeats says how the work grows with the text (:func:`cost`).

Example: ``why_not("(a+)+")`` says no, ``why_not("[a-z]+(-[a-z]+)*")`` is None.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

codes: Any = import_module("re._constants")  # since Python 3.11 the parser of `re` has no public name
parser: Any = import_module("re._parser")

MAX_PATTERN = 1000
"""The longest pattern, in characters."""

_MANY = 8  # a repeat with a higher bound than this costs like one without
_REFUSED = {
    codes.GROUPREF: "a back reference",
    codes.GROUPREF_EXISTS: "a back reference",
    codes.ASSERT: "a look-around",
    codes.ASSERT_NOT: "a look-around",
}
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_ANCHORS = ((codes.AT, codes.AT_BEGINNING), (codes.AT, codes.AT_BEGINNING_STRING))
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    codes.CATEGORY_DIGIT: str.isdigit,
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
}
_NEGATED = {
    codes.CATEGORY_NOT_DIGIT: codes.CATEGORY_DIGIT,
    codes.CATEGORY_NOT_SPACE: codes.CATEGORY_SPACE,
    codes.CATEGORY_NOT_WORD: codes.CATEGORY_WORD,
}


@functools.lru_cache(maxsize=512)
def why_not(pattern: str) -> str | None:
    """Return why a pattern is not used; None if it is fine."""
    if len(pattern) > MAX_PATTERN:
        return f"the pattern is longer than {MAX_PATTERN} characters"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
            return _judge(list(parser.parse(pattern)))
    except (re.error, OverflowError, RecursionError, Warning) as error:
        return f"the pattern {pattern[:80]!r} is no regular expression: {error}"


def cost(pattern: str, length: int) -> int:
    """Return about how many steps a pattern that is fine takes, at the worst, on a text of some length."""
    return int((length + 1) ** _power(pattern))


@functools.lru_cache(maxsize=512)
def _power(pattern: str) -> int:
    items = list(parser.parse(pattern))
    anchored = bool(items) and items[0] in _ANCHORS
    return max(1, _degrees(items) + (not anchored))


def _judge(items: list[Any]) -> str | None:
    for code, argument in items:
        if code in _REFUSED:
            return f"{_REFUSED[code]} in a pattern can take for ever"
        repeats = code in _REPEATS and argument[1] > 1
        for body in _bodies(code, argument):
            if repeats and not _told_apart(body):
                return "a repeat inside a repeat, or a choice inside one, can take for ever"
            if why := _judge(body):
                return why
    return None


def _bodies(code: Any, argument: Any) -> list[list[Any]]:
    """Return the item lists inside one item."""
    if code in _REPEATS:
        return [list(argument[2])]
    if code is codes.SUBPATTERN:
        return [list(argument[-1])]
    if code is codes.BRANCH:
        return [list(body) for body in argument[1]]
    return [list(argument)] if code is codes.ATOMIC_GROUP else []


def _flat(items: list[Any]) -> list[Any]:
    """Return the items with the groups around them taken off."""
    flat: list[Any] = []
    for code, argument in items:
        flat += _flat(list(argument[-1])) if code is codes.SUBPATTERN else [(code, argument)]
    return flat


def _told_apart(body: list[Any]) -> bool:
    """Whether a repeated body can be split from the next in one way only."""
    body = _flat(body)
    varying = [item for item in body if _varies(item)]
    if not varying:
        return True
    marks = [argument for code, argument in (body[0], body[-1]) if code is codes.LITERAL]
    return any(not any(_may_match(item, chr(mark)) for item in varying) for mark in marks)


def _varies(item: Any) -> bool:
    code, argument = item
    if code in _REPEATS:
        return bool(argument[0] != argument[1]) or any(map(_varies, _flat(list(argument[2]))))
    return code is codes.BRANCH


def _may_match(item: Any, char: str) -> bool:
    """Whether an item can take in a character; True where that is not known."""
    code, argument = item
    if code is codes.LITERAL:
        return bool(argument == ord(char))
    if code is codes.NOT_LITERAL:
        return bool(argument != ord(char))
    if code is codes.IN:
        return _in_set(argument, char)
    bodies = _bodies(code, argument)
    return not bodies or any(_may_match(inner, char) for body in bodies for inner in body)


def _in_set(members: list[Any], char: str) -> bool:
    negated = members[0][0] is codes.NEGATE
    return negated != any(_is_member(code, argument, char) for code, argument in members[negated:])


def _is_member(code: Any, argument: Any, char: str) -> bool:
    if code is codes.RANGE:
        return bool(argument[0] <= ord(char) <= argument[1])
    if code is codes.CATEGORY and argument in _NEGATED:
        return not _CATEGORIES[_NEGATED[argument]](char)
    if code is codes.CATEGORY:
        return bool(_CATEGORIES[argument](char))
    return bool(argument == ord(char))


def _degrees(items: list[Any]) -> int:
    """Return by how many powers of the text's length a sequence can multiply the work.

    A fixed character that no repeat before it can match ends what these can share out among them.
    """
    most, degree = 0, 0
    before: list[Any] = []
    for item in _flat(items):
        if item[0] is codes.LITERAL and not any(_may_match(one, chr(item[1])) for one in before):
            most, degree = max(most, degree), 0
            before = []
        elif _varies(item):
            degree += _degree(item)
            before.append(item)
    return max(most, degree)


def _degree(item: Any) -> int:
    code, argument = item
    own = int(code in _REPEATS and argument[1] > _MANY and argument[0] != argument[1])
    return own + max(map(_degrees, _bodies(code, argument)), default=0)
