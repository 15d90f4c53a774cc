"""Whether GitHub could have said that: calls and answers against GitHub's own description of its REST API.

Rules: a call must be one that the description has, with a query and a body that it takes, and nothing
besides. Its answer has a status that is documented for it, or one that any call can have; a body that
fits the schema of that status, and no property that the schema does not know, for whoever relied on one
would rely on nothing; but for ``status``, which GitHub gives in every error. What is wrong is told by
side, place and rule, never by an exception. The bodies of 5xx are whatever stood in between.

The description is trimmed to what is in use (:mod:`tests.github.trim_openapi`).

Example::

    exchange = Exchange("GET", "/repos/acme/bus/pulls/1", status=200, answer={"number": "1"})
    for problem in api().problems(exchange):
        print(problem)  # GET /repos/acme/bus/pulls/1: the answer 200 at $.number: '1' is not of type …
"""

from __future__ import annotations

import functools
import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.exceptions import relevance
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from tests.github.closing import named, strict
from tests.github.trim_openapi import FILE, VERSION

GENERAL = frozenset({304, 400, 401, 403, 404, 422, 429, *range(500, 600)})
"""Statuses that any call can have, documented for it or not."""

VERBS = ("get", "put", "post", "patch", "delete")
JSON = "application/json"
BASIC_ERROR = {"$ref": named("schemas", "basic-error")}
VALIDATION_ERRORS = {
    "anyOf": [{"$ref": named("schemas", name)} for name in ("validation-error", "validation-error-simple")]
}
FORMATS = FormatChecker(formats=())


@dataclass(frozen=True)
class Exchange:
    """One call and its answer.

    Args:
        verb: the HTTP verb.
        path: the path in the API, without a query and without the ``/api/v3`` of an own server.
        query: names and values of the query, as text.
        body: what was sent, parsed; None where nothing was.
        sent: the call's headers, by lower-case name; None where they are not known.
        status: the answer's status.
        headers: the answer's headers, by lower-case name.
        answer: what came back, parsed; None where nothing did.
    """

    verb: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    sent: Mapping[str, str] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    answer: Any = None


@dataclass(frozen=True)
class Problem:
    """What GitHub would not have taken, or could not have said; ``rule`` is the word of the description."""

    call: str
    side: str  # the call, or the answer and its status
    place: str
    rule: str
    message: str

    def __str__(self) -> str:
        """Return it as a line."""
        return f"{self.call}: {self.side} at {self.place}: {self.message} (rule {self.rule})"


@dataclass(frozen=True)
class Operation:
    """One call that GitHub knows."""

    template: str
    verb: str
    pattern: re.Pattern[str]
    parameters: tuple[Mapping[str, Any], ...]
    body: Mapping[str, Any] | None
    responses: Mapping[str, Any]


class Api:
    """A description of a REST API.

    Args:
        description: as :mod:`tests.github.trim_openapi` writes it.
    """

    def __init__(self, description: Mapping[str, Any]) -> None:
        components = description["components"]
        self._components = {kind: strict(some, components, names=True) for kind, some in components.items()}
        self._registry: Registry[Any] = Registry().with_resources(
            (named(kind, name), DRAFT202012.create_resource(one))
            for kind, some in self._components.items()
            for name, one in some.items()
        )
        self._validators: dict[int, tuple[Any, Draft202012Validator]] = {}
        found = [
            self._operation(template, verb, item)
            for template, item in strict(description["paths"], components, names=True).items()
            for verb in VERBS
            if verb in item
        ]
        self.operations = sorted(found, key=lambda one: (-one.template.count("/"), one.template.count("{")))

    def find(self, verb: str, path: str) -> tuple[Operation, dict[str, str]] | None:
        """Return the operation that a call is, and what its path names; None where there is no such call."""
        for one in self.operations:
            match = one.pattern.fullmatch(path) if one.verb == verb.lower() else None
            if match:
                return one, {name: unquote(text) for name, text in match.groupdict().items()}
        return None

    def problems(self, exchange: Exchange) -> list[Problem]:
        """Return all that is wrong with a call and its answer; nothing where all is well."""
        call = f"{exchange.verb} {exchange.path}"
        found = self.find(exchange.verb, exchange.path)
        if found is None:
            return [Problem(call, "the call", "$", "paths", "the description has no such call")]
        operation, values = found
        said = {
            "the call": (*self._asked(operation, values, exchange), *self._sent(operation, exchange)),
            f"the answer {exchange.status}": self._answered(operation, exchange),
        }
        return [Problem(call, side, *one) for side, some in said.items() for one in some]

    # --- the call

    def _asked(
        self, operation: Operation, values: Mapping[str, str], exchange: Exchange
    ) -> Iterator[tuple[str, str, str]]:
        given: dict[str, Mapping[str, str]] = {"path": values, "query": exchange.query}
        known = {where: {p["name"]: p for p in operation.parameters if p["in"] == where} for where in given}
        for where, some in given.items():
            for name, text in some.items():
                place = f"{where}.{name}"
                if name not in known[where]:
                    yield place, "parameters", "the description knows no such parameter"
                else:
                    schema = known[where][name]["schema"]
                    yield from self._against(schema, self._typed(schema, text), place)
            for name, parameter in known[where].items():
                if parameter.get("required") and name not in some:
                    yield f"{where}.{name}", "required", "it is missing"
        yield from self._pinned(exchange.sent or {})

    def _pinned(self, sent: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        """Say that a call asks for another version, or that gitbus asks for none."""
        version = sent.get("x-github-api-version", "" if sent.get("user-agent") == "gitbus" else VERSION)
        if version != VERSION:
            yield "headers.x-github-api-version", "version", f"{version!r} is not {VERSION}"

    def _sent(self, operation: Operation, exchange: Exchange) -> Iterator[tuple[str, str, str]]:
        body, content = exchange.body, operation.body
        if content is None:
            if body is not None:
                yield "$", "requestBody", "this call takes no body"
        elif body is not None:
            yield from self._against(content["content"][JSON]["schema"], body)
        elif content.get("required"):
            yield "$", "requestBody", "this call needs a body"

    def _typed(self, schema: Mapping[str, Any], text: str) -> Any:
        """Return the value that a text in a URL stands for, where it stands for one."""
        schema = (
            self._components["schemas"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        )
        kinds = schema.get("type", [])
        if "integer" in kinds and re.fullmatch(r"-?\d+", text):
            return int(text)
        return {"true": True, "false": False}.get(text, text) if "boolean" in kinds else text

    # --- the answer

    def _answered(self, operation: Operation, exchange: Exchange) -> Iterator[tuple[str, str, str]]:
        status, answer = exchange.status, exchange.answer
        documented = operation.responses.get(str(status))
        if documented is None and status not in GENERAL:
            yield "status", "responses", f"the description has {', '.join(operation.responses)}"
            return
        if status == 304 and exchange.sent is not None and "if-none-match" not in exchange.sent:
            yield "status", "condition", "the call had no condition"
        yield from self._headed(exchange)
        schema = (documented or {}).get("content", {}).get(JSON, {}).get("schema", _error(status))
        if isinstance(answer, dict) and answer.get("status") == str(status) and status >= 400:
            answer = {name: value for name, value in answer.items() if name != "status"}
        if status >= 500:
            return
        if schema is not None:
            yield from self._against(schema, answer)
        elif answer is not None:
            yield "$", "content", "there is to be no body"

    def _headed(self, exchange: Exchange) -> Iterator[tuple[str, str, str]]:
        kind = exchange.headers.get("content-type", JSON).partition(";")[0]
        if exchange.answer is not None and kind != JSON and exchange.status < 500:
            yield "headers.content-type", "content", f"{kind} is not {JSON}"
        link = exchange.headers.get("link")
        if link is not None and not _LINKS.fullmatch(link):
            yield "headers.link", "rfc8288", f"{link!r} names no pages"

    # --- schemas

    def _against(self, schema: Any, value: Any, place: str = "$") -> Iterator[tuple[str, str, str]]:
        kept = self._validators.get(id(schema))
        if kept is None:
            made = Draft202012Validator(schema, registry=self._registry, format_checker=FORMATS)
            kept = self._validators[id(schema)] = (schema, made)
        for error in kept[1].iter_errors(value):
            deep = _deepest(error)
            yield place + deep.json_path[1:], str(deep.validator), _short(deep.message)

    def _operation(self, template: str, verb: str, item: Mapping[str, Any]) -> Operation:
        told = item[verb]
        parameters = [self._resolved(one) for one in (*item["parameters"], *told.get("parameters", ()))]
        many = {one["name"] for one in parameters if one.get("x-multi-segment")} | {"basehead"}
        parts = re.split(r"\{(\w+)\}", template)
        made = [re.escape(parts[0])]
        for name, literal in zip(parts[1::2], parts[2::2], strict=True):
            made.append(f"(?P<{name}>{'.+' if name in many else '[^/]+'})" + re.escape(literal))
        responses = {status: self._resolved(one) for status, one in told["responses"].items()}
        body = self._resolved(told["requestBody"]) if "requestBody" in told else None
        return Operation(template, verb, re.compile("".join(made)), tuple(parameters), body, responses)

    def _resolved(self, node: Any) -> Any:
        if "$ref" not in node:
            return node
        kind, name = urlsplit(node["$ref"]).path.rsplit("/", 2)[-2:]
        return self._components[kind][name]


@functools.cache
def api() -> Api:
    """Return GitHub's REST API at the version that gitbus asks for."""
    return Api(json.loads(gzip.decompress(FILE.read_bytes())))


_LINKS = re.compile(
    r'<[^<>]+>; rel="(?:prev|next|last|first)"(?:, <[^<>]+>; rel="(?:prev|next|last|first)")*'
)


def _error(status: int) -> Any:
    """Return the schema of an error that is not documented for a call; None where there is no body to check."""
    return VALIDATION_ERRORS if status == 422 else BASIC_ERROR if 400 <= status < 500 else None


def _deepest(error: ValidationError) -> ValidationError:
    """Return the error that says most: of alternatives, that of the one that came nearest."""
    while error.context:
        error = max(error.context, key=lambda one: (len(one.absolute_path), _near(one), relevance(one)))
    return error


def _near(error: ValidationError) -> bool:
    return error.validator not in ("type", "enum", "const")


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:150]} … {text[-150:]}"


@FORMATS.checks("date-time", ValueError)
def _date_time(value: object) -> bool:
    """GitHub writes times in UTC with a Z, to the second or finer (RFC 3339)."""
    return not isinstance(value, str) or ("T" in value and datetime.fromisoformat(value).tzinfo is not None)


@FORMATS.checks("date", ValueError)
def _date(value: object) -> bool:
    return not isinstance(value, str) or bool(date.fromisoformat(value))


@FORMATS.checks("uri")
def _uri(value: object) -> bool:
    """Absolute, as RFC 3986 has it."""
    return not isinstance(value, str) or bool(
        re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+", value)
    )
