"""Agent command lines that run headless: claude, codex and llm, each asked and read in its own way.

Rules: the prompt goes in on standard input (no limit of length, not seen by ``ps``); the task's
schema is passed where the program knows how; a rate limit or an overloaded server is a ``retry``,
everything else that went wrong a failure. What an API calls input, cached or not, is ``tokens_in``.

Read from the real programs: claude 2.1, codex 0.171, llm 0.36.

Example: ``ADAPTERS["claude"].call(("claude",), job, room).argv`` is
``("claude", "-p", "--output-format", "json")``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gitbus.errors import Invalid
from gitbus.runner.adapters import JSON, PLAIN, TEXT, Adapter, Call, Fields, bad_exit, text_of
from gitbus.runner.answers import DETAIL, from_text, read_json, trouble
from gitbus.runner.base import Job
from gitbus.runner.process import Ended
from gitbus.runner.prompt import prompt
from gitbus.runner.room import Room
from gitbus.runner.text import clean, last_line, tail

RATE_LIMIT = "10m"
OVERLOADED = "2m"
KEEP = 32 << 20
"""Bytes that an agent may print: codex tells of every step."""

_STATUS = re.compile(r"\b(?:status:? |API Error: |Error code: |HTTP )(\d{3})\b")
_PASSING: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"rate.?limit|usage limit|too many requests|quota|limit reached|\b429\b", re.IGNORECASE),
        RATE_LIMIT,
    ),
    (re.compile(r"overloaded|\b(?:502|503|504|529)\b|temporarily unavailable", re.IGNORECASE), OVERLOADED),
)
_AFTER: Mapping[int, str] = {
    429: RATE_LIMIT,
    500: OVERLOADED,
    502: OVERLOADED,
    503: OVERLOADED,
    504: OVERLOADED,
    529: OVERLOADED,
}
_LOGIN = re.compile(
    r"not logged in|invalid api key|no key found|unauthorized|\b401\b|x-api-key|/login", re.IGNORECASE
)
_FENCE = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n```\s*", re.DOTALL)


def refusal(message: str, detail: str, status: int | None = None) -> Fields:
    """Return the fields for what an agent's API said no to: passing, a missing login, or another failure."""
    if status is None and (found := _STATUS.search(message)):
        status = int(found[1])
    after = (
        _AFTER.get(status)
        if status
        else next((wait for words, wait in _PASSING if words.search(message)), None)
    )
    if after:
        return trouble(message, detail, retry=True, after=after)
    if status == 401 or _LOGIN.search(message):
        message += " (log the program in for this user, or pass its key with --env NAME)"
    return trouble(message, detail)


def spoken(text: str, job: Job) -> dict[str, Any]:
    """Return the outputs that an agent's last words stand for: an object where the task has a schema.

    Raises:
        Invalid: the task has a schema and this is no JSON object.
    """
    if job.task.outputs is None:
        return dict(from_text(text).get("outputs", {}))
    fenced = _FENCE.fullmatch(text)
    value = read_json(fenced[1] if fenced else text)
    if not isinstance(value, dict):
        raise Invalid("the agent's answer is no JSON object", rule="not-a-mapping")
    return value


def _count(*values: Any) -> int | None:
    known = [
        value for value in values if isinstance(value, int) and not isinstance(value, bool) and value >= 0
    ]
    return sum(known) if known else None


def _envelope(line: str) -> dict[str, Any]:
    value = read_json(line)
    if not isinstance(value, dict):
        raise Invalid("the agent's envelope is no JSON object", rule="not-a-mapping")
    return value


def _part(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# --- claude


def _claude_call(argv: Sequence[str], job: Job, _room: Room) -> Call:
    schema = () if job.task.outputs is None else ("--json-schema", json.dumps(job.task.outputs))
    return Call((*argv, "-p", "--output-format", "json", *schema), prompt(job).encode())


def _claude_read(ended: Ended, _room: Room, job: Job) -> Fields:
    try:
        said = _envelope(text_of(ended).strip())
    except Invalid:
        if (exit_says := bad_exit(ended)) is not None:
            return refusal(exit_says["error"]["message"], exit_says["error"].get("detail", ""))
        raise
    text = str(said.get("result") or "")
    if said.get("is_error") is not False:
        status = said.get("api_error_status")
        message = text or f"claude ended as {said.get('subtype')}"
        fields = refusal(message, tail(ended.stderr, DETAIL), status if isinstance(status, int) else None)
    else:
        structured = said.get("structured_output")
        fields = {"outputs": structured if isinstance(structured, dict) else spoken(text, job)}
    return {**fields, "usage": _claude_usage(said)}


def _claude_usage(said: Mapping[str, Any]) -> dict[str, Any]:
    usage = _part(said.get("usage"))
    models = sorted(_part(said.get("modelUsage")))
    cost = said.get("total_cost_usd")
    kinds = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return {
        "model": models[0] if len(models) == 1 else ", ".join(models) or None,
        "tokens_in": _count(*(usage.get(kind) for kind in kinds)),
        "tokens_out": _count(usage.get("output_tokens")),
        "cost_usd": float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
    }


# --- codex


def _codex_call(argv: Sequence[str], job: Job, room: Room) -> Call:
    words = [*argv, *(() if "exec" in argv else ("exec",)), "--json", "--ephemeral", "--skip-git-repo-check"]
    if not {"-s", "--sandbox", "--full-auto", "--dangerously-bypass-approvals-and-sandbox"} & set(argv):
        words += ["-s", "read-only"]
    schema = strict(job.task.outputs) if job.task.outputs is not None else None
    if schema is not None:
        path = room.keep("schema.json", json.dumps(schema).encode())
        words += ["--output-schema", str(path)]
    return Call([*words, "-"], prompt(job).encode())


def _codex_read(ended: Ended, _room: Room, job: Job) -> Fields:
    events = [_envelope(one) for one in text_of(ended).splitlines() if one.lstrip().startswith("{")]
    usage = _codex_usage(events)
    wrong = [_codex_error(event) for event in events if event.get("type") in ("turn.failed", "error")]
    if ended.code != 0 or not any(event.get("type") == "turn.completed" for event in events):
        exit_says = bad_exit(ended)
        message = (
            wrong[-1]
            if wrong
            else exit_says["error"]["message"]
            if exit_says
            else "codex ended without an answer"
        )
        return {**refusal(message, tail(ended.stderr, DETAIL)), "usage": usage}
    items = [_part(event.get("item")) for event in events if event.get("type") == "item.completed"]
    texts = [str(item.get("text") or "") for item in items if item.get("type") == "agent_message"]
    return {"outputs": spoken(texts[-1] if texts else "", job), "usage": usage}


def _codex_error(event: Mapping[str, Any]) -> str:
    """Return what an event complains of; the message can itself be an API's JSON."""
    message = str(event.get("message") or _part(event.get("error")).get("message") or "")
    try:
        inner = _part(_part(json.loads(message)).get("error"))
    except (ValueError, RecursionError):
        return message
    return f"{inner.get('type')}: {inner.get('message')}" if inner else message


def _codex_usage(events: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    turns = [_part(event.get("usage")) for event in events if event.get("type") == "turn.completed"]
    if not turns:
        return None
    return {
        "tokens_in": _count(*(turn.get("input_tokens") for turn in turns)),
        "tokens_out": _count(*(turn.get("output_tokens") for turn in turns)),
    }


_KEPT = ("type", "description", "enum", "const", "$ref")


def strict(schema: Any) -> dict[str, Any] | None:
    """Return a schema as OpenAI's structured outputs take it; None where they cannot say it.

    There every object is closed and has all of its properties, and most other keywords are unknown.
    What is left out here is checked when the answer comes.
    """
    if not isinstance(schema, dict):
        return None
    made: dict[str, Any] = {name: schema[name] for name in _KEPT if name in schema}
    for name, inner in (("properties", schema.get("properties")), ("$defs", schema.get("$defs"))):
        if inner is not None:
            parts = {key: strict(value) for key, value in _part(inner).items()}
            if None in parts.values():
                return None
            made[name] = parts
    if not _strict_shape(schema, made):
        return None
    return made


def _strict_shape(schema: Mapping[str, Any], made: dict[str, Any]) -> bool:
    """Complete objects, lists and choices; say whether they can be said at all."""
    kinds = schema.get("type")
    if "object" in (kinds if isinstance(kinds, list) else [kinds]):
        if not made.get("properties") or schema.get("additionalProperties", False) is not False:
            return False
        made |= {"required": list(made["properties"]), "additionalProperties": False}
    if "items" in schema or schema.get("type") == "array":
        made["items"] = strict(schema.get("items"))
    choices = schema.get("anyOf", schema.get("oneOf"))
    if choices is not None:
        made["anyOf"] = [strict(choice) for choice in choices]
    told = {"type", "enum", "const", "$ref", "anyOf"} & made.keys()
    return bool(told) and made.get("items", {}) is not None and None not in made.get("anyOf", ())


# --- llm


def _llm_call(argv: Sequence[str], job: Job, _room: Room) -> Call:
    schema = () if job.task.outputs is None else ("--schema", json.dumps(job.task.outputs))
    return Call((*argv, "--no-stream", "-n", "-u", *schema), prompt(job).encode())


_LLM_USAGE = re.compile(r"Token usage: ([0-9,]+) input(?:, ([0-9,]+) output)?")


def _llm_read(ended: Ended, _room: Room, job: Job) -> Fields:
    said = clean(ended.stderr.decode("utf-8", "replace"))
    if ended.code != 0:
        return refusal(last_line(said) or f"exit code {ended.code}", said)
    found = _LLM_USAGE.search(said)
    counts = (
        [int(part.replace(",", "")) if part else None for part in found.groups()] if found else [None, None]
    )
    usage = {"tokens_in": counts[0], "tokens_out": counts[1]} if found else None
    return {"outputs": spoken(text_of(ended), job), "usage": usage}


ADAPTERS: Mapping[str, Adapter] = {
    "claude": Adapter("claude", _claude_call, _claude_read, ("claude",), (".claude", ".claude.json"), KEEP),
    "codex": Adapter("codex", _codex_call, _codex_read, ("codex",), (".codex",), KEEP),
    "llm": Adapter("llm", _llm_call, _llm_read, ("llm",), (".config/io.datasette.llm",), KEEP),
    "json": JSON,
    "text": TEXT,
    "plain": PLAIN,
}
"""What ``--as`` takes; ``plain`` is what it is without."""
