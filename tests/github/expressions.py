"""GitHub's expressions (``${{ … }}`` and ``if:``), as far as workflows of ours use them.

Rules: strings compare without regard to case; an unknown property is null; ``&&`` and ``||`` give one
of their sides; a condition that names no status function also needs everything before it to have
succeeded.

Example: ``evaluate("needs.a.outputs.n == '1' || failure()", {"needs": {…}}, Status(True, False))``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

TOKEN = re.compile(
    r"\s*(?:(?P<string>'(?:[^']|'')*')|(?P<number>-?\d+(?:\.\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[()!<>.,\[\]]))"
)
INSIDE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
STATUS = ("success", "failure", "always", "cancelled")


@dataclass(frozen=True)
class Status:
    """How it went until now."""

    succeeded: bool = True
    cancelled: bool = False


class _Parser:
    def __init__(self, text: str, contexts: Mapping[str, Any], status: Status) -> None:
        self.tokens = self._split(text)
        self.at = 0
        self.contexts = contexts
        self.status = status

    @staticmethod
    def _split(text: str) -> list[tuple[str, str]]:
        found, at = [], 0
        text = text.strip()
        while at < len(text):
            match = TOKEN.match(text, at)
            assert match is not None, f"no expression: {text[at:]!r}"
            assert match.lastgroup is not None
            found.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        return found

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> tuple[str, str]:
        kind, text = self.tokens[self.at]
        assert not wanted or text == wanted, f"{wanted} wanted, {text} found"
        self.at += 1
        return kind, text

    def whole(self) -> Any:
        value = self.either()
        assert self.at == len(self.tokens), f"what is {self.peek()!r}"
        return value

    def either(self) -> Any:
        value = self.both()
        while self.peek() == "||":
            self.take()
            other = self.both()
            value = value if truth(value) else other
        return value

    def both(self) -> Any:
        value = self.compared()
        while self.peek() == "&&":
            self.take()
            other = self.compared()
            value = other if truth(value) else value
        return value

    def compared(self) -> Any:
        value = self.negated()
        if self.peek() in ("==", "!="):
            _, sign = self.take()
            same = _same(value, self.negated())
            return same if sign == "==" else not same
        if self.peek() in ("<", ">", "<=", ">="):
            _, sign = self.take()
            one, other = _number(value), _number(self.negated())
            return {"<": one < other, ">": one > other, "<=": one <= other, ">=": one >= other}[sign]
        return value

    def negated(self) -> Any:
        if self.peek() == "!":
            self.take()
            return not truth(self.negated())
        return self.single()

    def single(self) -> Any:
        kind, text = self.take()
        if text == "(":
            value = self.either()
            self.take(")")
            return value
        if kind == "string":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return float(text)
        if text in ("true", "false", "null"):
            return json.loads(text)
        if self.peek() == "(":
            return self.called(text)
        assert text in self.contexts, f"no context {text}"
        return self.property(self.contexts[text])

    def property(self, value: Any) -> Any:
        while self.peek() in (".", "["):
            _, sign = self.take()
            name = self.take()[1] if sign == "." else self.either()
            if sign == "[":
                self.take("]")
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def called(self, name: str) -> Any:
        self.take("(")
        arguments = []
        while self.peek() != ")":
            arguments.append(self.either())
            if self.peek() == ",":
                self.take()
        self.take(")")
        functions: Mapping[str, Callable[..., Any]] = {
            "success": lambda: self.status.succeeded and not self.status.cancelled,
            "failure": lambda: not self.status.succeeded,
            "always": lambda: True,
            "cancelled": lambda: self.status.cancelled,
            "fromJSON": json.loads,
            "toJSON": json.dumps,
            "startsWith": lambda text, start: str(text).lower().startswith(str(start).lower()),
            "contains": lambda whole, part: part in whole,
            "format": lambda text, *more: text.format(*more),
        }
        return functions[name](*arguments)


def evaluate(text: str, contexts: Mapping[str, Any], status: Status = Status()) -> Any:
    """Return what an expression (without its braces) is worth."""
    return _Parser(text, contexts, status).whole()


def filled(value: Any, contexts: Mapping[str, Any], status: Status = Status()) -> Any:
    """Return a value of the YAML with its expressions evaluated; one that is all there is keeps its type."""
    if isinstance(value, Mapping):
        return {key: filled(one, contexts, status) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, contexts, status) for one in value]
    if not isinstance(value, str):
        return value
    alone = re.fullmatch(INSIDE, value.strip())
    if alone and "${{" not in alone[1]:
        return evaluate(alone[1], contexts, status)
    return INSIDE.sub(lambda found: shown(evaluate(found[1], contexts, status)), value)


def condition(text: Any, contexts: Mapping[str, Any], status: Status) -> bool:
    """Say whether a job or step runs, by its ``if:``."""
    if text is None:
        return status.succeeded and not status.cancelled
    words = str(text).strip()
    if words.startswith("${{"):
        words = words.removeprefix("${{").removesuffix("}}")
    met = truth(evaluate(words, contexts, status))
    if any(re.search(rf"\b{name}\(", words) for name in STATUS):
        return met
    return met and status.succeeded and not status.cancelled


def truth(value: Any) -> bool:
    """Say whether a value counts as true."""
    return value not in (None, "", 0, False)


def shown(value: Any) -> str:
    """Return a value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one.lower() == other.lower()
    if type(one) is type(other):
        return bool(one == other)
    return _number(one) == _number(other)


def _number(value: Any) -> float:
    try:
        return float(value or 0)
    except (TypeError, ValueError):
        return float("nan")
