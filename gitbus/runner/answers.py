"""From what a program wrote or printed to a Result: full, short, or a failure that says why.

Rules: what the program left out (its task, its name, the times, hashes of its files) is filled in,
what it wrote stays; a result that the conductor would refuse by itself, by its artifacts or by the
task's schema becomes a failed one with the rule, so that it costs an answer and not a refusal.

Example: a program that prints ``{"n": 1}`` has ``outputs: {n: 1}``; one that prints text has
``outputs: {text: …}``.
"""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from pydantic import ValidationError

from gitbus import codec, ids, schema
from gitbus.errors import Invalid
from gitbus.records import Result
from gitbus.records.work import Usage
from gitbus.runner.base import Answer, Job
from gitbus.runner.text import clean, line

DETAIL = 8000
"""The most characters of a failure's detail."""


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when an attempt ran."""

    started: datetime
    finished: datetime


def read_json(text: str) -> Any:
    """Read a JSON value that a stranger printed.

    Raises:
        Invalid: it is none, or says something twice, or is not finite, or nested without end.
    """
    try:
        return json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant)
    except RecursionError:
        raise Invalid("what was printed is nested too deeply", rule="too-deep") from None
    except ValueError as error:
        raise Invalid(f"what was printed is no JSON: {error}", rule="syntax") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        twice = next(name for name in data if [key for key, _ in pairs].count(name) > 1)
        raise Invalid(f"the key {twice[:80]!r} was printed twice in one object", rule="duplicate-key")
    return data


def _constant(name: str) -> NoReturn:
    raise Invalid(f"{name} is no number that JSON knows", rule="non-finite")


def from_object(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a Result that a printed object stands for: a whole Result, or its outputs."""
    return dict(value) if value.get("kind") == "Result" else {"outputs": dict(value)}


def from_text(text: str) -> dict[str, Any]:
    """Return the fields of a Result that printed text stands for; nothing printed is no output."""
    return {"outputs": {"text": text.rstrip("\r\n")}} if text else {}


def printed(text: str) -> dict[str, Any]:
    """Return the fields of a Result for what was printed: an object, or else text.

    Raises:
        Invalid: it is an object with something wrong about it.
    """
    if text.lstrip()[:1] != "{":
        return from_text(text)
    try:
        value = read_json(text)
    except Invalid as error:
        if error.rule == "syntax":
            return from_text(text)
        raise
    return from_object(value)


def trouble(
    message: str, detail: str = "", *, retry: bool = False, after: str | None = None
) -> dict[str, Any]:
    """Return the fields of a Result that failed, or that asks to be tried again after a while."""
    error = {"message": line(message, 500) or "it failed"}
    if detail.strip():
        error["detail"] = clean(detail)[-DETAIL:]
    fields: dict[str, Any] = {"status": "retry" if retry else "failed", "error": error}
    return {**fields, "after": after} if after else fields


def failed(job: Job, span: Span, message: str, detail: str = "", usage: Usage | None = None) -> Answer:
    """Return the answer of an attempt that failed."""
    return Answer(Result.model_validate({**_head(job, span), **trouble(message, detail), "usage": usage}))


def answer(
    job: Job, span: Span, fields: Mapping[str, Any], files: Mapping[str, bytes], raw: str = ""
) -> Answer:
    """Return the answer that a program gave, or a failure where the conductor would refuse it.

    Args:
        job: what it was asked.
        span: when.
        fields: what it said, as fields of a Result.
        files: the artifacts that it left.
        raw: what it printed, for the failure's detail.
    """
    said = {name: value for name, value in fields.items() if value is not None}
    whole = {**_head(job, span), "status": "ok", **said}
    whole["artifacts"] = _artifacts(whole.get("artifacts"), files)
    try:
        text = codec.emit(whole).encode("utf-8")
        result = codec.read(text, Result, path="result", limit=job.limits.record)
        _is_small(result, job)
        _is_meant(result, job)
        _is_complete(result, files)
        _fits(result, job)
    except Invalid as error:
        return failed(job, span, f"{error.rule}: {error.message}", raw, _usage(said))
    return Answer(result, files)


def _usage(said: Mapping[str, Any]) -> Usage | None:
    """Return what a refused answer cost, where it says so in a way that can be read."""
    try:
        return Usage.model_validate(said.get("usage"))
    except ValidationError:
        return None


def _head(job: Job, span: Span) -> dict[str, Any]:
    return {
        "apiVersion": "gitbus/v1",
        "kind": "Result",
        "goal": job.task.goal,
        "task": job.task.id,
        "attempt": job.task.attempt,
        "worker": job.worker,
        "started_at": ids.time_text(span.started),
        "finished_at": ids.time_text(span.finished),
    }


def _artifacts(listed: Any, files: Mapping[str, bytes]) -> Any:
    """Complete the list of artifacts: what the program left out of it or of an entry."""
    if listed is not None and not isinstance(listed, list):
        return listed
    known = [dict(one) if isinstance(one, Mapping) else one for one in listed or []]
    named = {one.get("path") for one in known if isinstance(one, dict) and isinstance(one.get("path"), str)}
    known += [{"path": path} for path in sorted(files) if path not in named]
    return [_completed(one, files) if isinstance(one, dict) else one for one in known]


def _completed(entry: dict[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    path = str(entry.get("path"))
    data = files.get(path)
    if data is None:
        return entry
    media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return {"sha256": ids.sha256(data), "bytes": len(data), "media_type": media_type, **entry}


def _is_small(result: Result, job: Job) -> None:
    if len(codec.write(result)) > job.limits.record:
        raise Invalid(f"the result has more than {job.limits.record} bytes", rule="too-large")


def _is_meant(result: Result, job: Job) -> None:
    meant = (job.task.goal, job.task.id, job.task.attempt, job.worker)
    if (result.goal, result.task, result.attempt, result.worker) != meant:
        raise Invalid("the result names another goal, task, attempt or worker", rule="wrong-task")


def _is_complete(result: Result, files: Mapping[str, bytes]) -> None:
    for one in result.artifacts:
        data = files.get(one.path)
        if data is None:
            raise Invalid(f"{one.path} was not written", rule="artifact-missing")
        if (ids.sha256(data), len(data)) != (one.sha256, one.bytes):
            raise Invalid(
                f"{one.path} has another hash or size than the result says", rule="artifact-mismatch"
            )


def _fits(result: Result, job: Job) -> None:
    if result.status != "ok" or job.task.outputs is None:
        return
    for place, message in schema.errors(result.outputs, job.task.outputs):
        where = ".".join(map(str, ("outputs", *place)))
        raise Invalid(f"{where}: {message}", rule="outputs-schema")
