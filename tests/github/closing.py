"""Makes the schemas of a description strict: what they do not name is not there.

Rules: GitHub's schemas leave objects open, so that a property with a misspelt name would pass. Here an
object that names properties has no others; the parts of an ``allOf`` are put together first, for none of
them knows what the others name. References become URIs (``api:/schemas/NAME``), so that every part of a
description can be used by itself.

Example: ``strict({"properties": {"a": {}}}, {})`` adds ``"additionalProperties": False``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.github.trim_openapi import NAMED

LOCAL = "#/components/"


def named(kind: str, name: str) -> str:
    """Return the URI of a component."""
    return f"api:/{kind}/{name}"


def strict(node: Any, components: Mapping[str, Any], *, names: bool = False) -> Any:
    """Return a part of a description with closed objects, and with references by URI.

    Args:
        node: the part.
        components: those of the whole description.
        names: its keys are names, not keywords.
    """
    if isinstance(node, list):
        return [strict(one, components) for one in node]
    if not isinstance(node, dict):
        return node
    if not names and isinstance(node.get("$ref"), str):
        return {"$ref": named(*node["$ref"].removeprefix(LOCAL).split("/"))}
    whole = node if names else joined(node, components)
    made = {
        key: strict(one, components, names=not names and key in NAMED and isinstance(one, dict))
        for key, one in whole.items()
    }
    if names or "properties" not in made:
        return made
    return {"additionalProperties": False, **made}


def joined(schema: dict[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose ``allOf``, if all of it names properties, is one object."""
    parts = [_resolved(one, components) for one in schema.get("allOf", ())]
    if not parts or not all("properties" in one for one in parts):
        return schema
    made = {key: value for key, value in schema.items() if key != "allOf"}
    properties = {name: one for part in parts for name, one in part["properties"].items()}
    needed = sorted({name for part in parts for name in part.get("required", ())})
    return {**made, "properties": properties, "required": needed}


def _resolved(schema: dict[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return joined(schema, components)
    kind, name = schema["$ref"].removeprefix(LOCAL).split("/")
    return joined(components[kind][name], components)
