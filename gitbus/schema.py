"""JSON Schema (draft 2020-12) of a task's outputs: is it one, and what does an instance break.

Rules: no reference leaves the schema (nothing is ever fetched), ``format`` is a remark, and both
schema and instance may come from a stranger, so the work is bounded: by steps, by what a pattern
may cost (:mod:`gitbus.patterns`), and by how much is told.

The library behind it takes a tenth of a second to import, so it is imported by the first question.

Example: ``errors({"n": "x"}, {"properties": {"n": {"type": "integer"}}})`` gives
``[(("n",), "'x' is not of type 'integer'")]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Place = tuple[str | int, ...]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_STEPS = 300_000
"""How many keywords one check looks at, members of their lists and 50 steps of a pattern counted alike."""
MAX_ERRORS = 20
MAX_MESSAGE = 300
"""The most characters of one message; an instance can be a megabyte."""


def check(schema: Any) -> str | None:
    """Return what keeps ``schema`` from being the schema of a task's outputs; None if nothing does."""
    from gitbus import schemacheck

    return schemacheck.check(schema)


def errors(instance: Any, schema: Mapping[str, Any]) -> list[tuple[Place, str]]:
    """Return what ``instance`` breaks, at most :data:`MAX_ERRORS`: each a place in it and a sentence.

    A schema that :func:`check` refuses is itself the one error.
    """
    from gitbus import schemacheck

    return schemacheck.errors(instance, schema)
