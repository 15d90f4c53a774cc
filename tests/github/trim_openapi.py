"""Makes ``api-2022-11-28.json.gz`` anew: GitHub's own description of its REST API, trimmed to what is in use.

Rules: the package and its version are pinned, npm proves its checksum, and the same package gives the
same bytes. GitHub keeps version 2022-11-28 as the description itself and what later versions change as
``x-github-breaking-changes`` beside it, so that leaving these out pins the version. What stays are the
operations of ``OPERATIONS`` and the components that they reach; descriptions, examples and GitHub's own
extensions go, but for ``x-multi-segment`` (a path parameter that may hold slashes). The dialect becomes
that of OpenAPI 3.1, which is plain JSON Schema 2020-12: ``nullable`` turns into a type.

Run it where ``npm`` is, and commit what it wrote::

    python -m tests.github.trim_openapi
"""

from __future__ import annotations

import gzip
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

PACKAGE, RELEASE = "@octokit/openapi", "23.0.2"
MEMBER = "package/generated/api.github.com.json"
VERSION = "2022-11-28"
FILE = Path(__file__).with_name(f"api-{VERSION}.json.gz")
HEADER = FILE.with_name(f"api-{VERSION}.txt")
"""Says what the file is, for it cannot itself be read; with the licence of the package."""

MADE = (
    f"Made by tests/github/trim_openapi.py from {MEMBER} of the npm package {PACKAGE} {RELEASE}, which is"
    f" GitHub's description of its REST API (github/rest-api-description) at version {VERSION}."
    " MIT License, Copyright (c) 2020 Octokit contributors. Trimmed to the operations in use; descriptions"
    " and examples are left out, and nullable is written as a type."
)

REPO = "/repos/{owner}/{repo}"
OPERATIONS: dict[str, str] = {
    "/rate_limit": "get",
    "/meta": "get",
    "/user": "get",
    "/user/{account_id}": "get",
    "/users/{username}": "get",
    "/app": "get",
    "/app/installations": "get",
    "/app/installations/{installation_id}": "get",
    "/app/installations/{installation_id}/access_tokens": "post",
    "/installation/repositories": "get",
    f"{REPO}": "get patch",
    f"{REPO}/installation": "get",
    f"{REPO}/branches": "get",
    f"{REPO}/branches/{{branch}}": "get",
    f"{REPO}/branches/{{branch}}/protection": "get put delete",
    f"{REPO}/git/ref/{{ref}}": "get",
    f"{REPO}/git/refs": "post",
    f"{REPO}/git/refs/{{ref}}": "patch delete",
    f"{REPO}/git/commits/{{commit_sha}}": "get",
    f"{REPO}/contents/{{path}}": "get put",
    f"{REPO}/commits": "get",
    f"{REPO}/commits/{{ref}}": "get",
    f"{REPO}/commits/{{ref}}/status": "get",
    f"{REPO}/commits/{{commit_sha}}/pulls": "get",
    f"{REPO}/compare/{{basehead}}": "get",
    f"{REPO}/statuses/{{sha}}": "post",
    f"{REPO}/pulls": "get post",
    f"{REPO}/pulls/{{pull_number}}": "get patch",
    f"{REPO}/pulls/{{pull_number}}/merge": "get put",
    f"{REPO}/pulls/{{pull_number}}/update-branch": "put",
    f"{REPO}/pulls/{{pull_number}}/commits": "get",
    f"{REPO}/pulls/{{pull_number}}/files": "get",
    f"{REPO}/pulls/{{pull_number}}/requested_reviewers": "get post delete",
    f"{REPO}/pulls/{{pull_number}}/reviews": "get post",
    f"{REPO}/pulls/{{pull_number}}/reviews/{{review_id}}": "get",
    f"{REPO}/pulls/{{pull_number}}/reviews/{{review_id}}/dismissals": "put",
    f"{REPO}/issues": "get post",
    f"{REPO}/issues/comments/{{comment_id}}": "get patch",
    f"{REPO}/issues/{{issue_number}}": "get patch",
    f"{REPO}/issues/{{issue_number}}/comments": "get post",
    f"{REPO}/issues/{{issue_number}}/events": "get",
    f"{REPO}/issues/{{issue_number}}/timeline": "get",
    f"{REPO}/issues/{{issue_number}}/labels": "get post put",
    f"{REPO}/issues/{{issue_number}}/labels/{{name}}": "delete",
    f"{REPO}/labels": "get post",
    f"{REPO}/labels/{{name}}": "get patch",
    f"{REPO}/rulesets": "get post",
    f"{REPO}/rulesets/{{ruleset_id}}": "get put delete",
    f"{REPO}/rules/branches/{{branch}}": "get",
    f"{REPO}/environments": "get",
    f"{REPO}/environments/{{environment_name}}": "get put",
    f"{REPO}/environments/{{environment_name}}/deployment-branch-policies": "get post",
    f"{REPO}/environments/{{environment_name}}/secrets": "get",
    f"{REPO}/environments/{{environment_name}}/variables/{{name}}": "get",
    f"{REPO}/actions/secrets": "get",
    f"{REPO}/actions/variables/{{name}}": "get",
    f"{REPO}/actions/permissions": "get put",
    f"{REPO}/actions/permissions/workflow": "get put",
    f"{REPO}/actions/workflows/{{workflow_id}}/dispatches": "post",
    f"{REPO}/collaborators": "get",
    f"{REPO}/collaborators/{{username}}/permission": "get",
    f"{REPO}/keys": "get",
    f"{REPO}/codeowners/errors": "get",
}
"""The operations in use: path, as the description names it, to verbs."""

SAID_ONLY = frozenset({"description", "summary", "example", "examples", "title", "externalDocs", "tags"})
"""What only tells people something; a property may have such a name, and stays."""

NAMED = frozenset(
    {"properties", "patternProperties", "schemas", "parameters", "responses", "headers", "paths"}
)
"""Whose keys are names, not keywords."""


def trimmed(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the description of the operations in use, and of nothing else.

    Args:
        whole: the description as GitHub publishes it.

    Raises:
        KeyError: it has no such operation.
    """
    paths = {}
    for path, verbs in OPERATIONS.items():
        shared = {"parameters": whole["paths"][path].get("parameters", [])}
        paths[path] = {**shared, **{verb: whole["paths"][path][verb] for verb in verbs.split()}}
    slim = silent({"paths": paths, "components": whole["components"]})
    components: dict[str, dict[str, Any]] = {}
    for kind, name in reached(slim["paths"], slim["components"]):
        components.setdefault(kind, {})[name] = slim["components"][kind][name]
    info = {"title": whole["info"]["title"], "version": VERSION, "license": whole["info"]["license"]}
    return {
        "openapi": "3.1.0",
        "info": info | {"description": MADE},
        "paths": slim["paths"],
        "components": {kind: dict(sorted(named.items())) for kind, named in sorted(components.items())},
    }


def silent(node: Any, *, names: bool = False) -> Any:
    """Return a part of a description without what only tells people something, in the newer dialect.

    Args:
        node: the part.
        names: its keys are names, not keywords.
    """
    if isinstance(node, list):
        return [silent(one) for one in node]
    if not isinstance(node, dict):
        return node
    if names:
        return {name: silent(one) for name, one in node.items()}
    kept = {
        key: silent(one, names=key in NAMED and isinstance(one, dict))
        for key, one in node.items()
        if key not in SAID_ONLY and (key == "x-multi-segment" or not key.startswith("x-"))
    }
    return nullable(kept) if kept.pop("nullable", False) else kept


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also takes null, as OpenAPI 3.0's ``nullable: true`` says."""
    if "enum" in schema:
        schema = {**schema, "enum": [*schema["enum"], *([] if None in schema["enum"] else [None])]}
    if any(word in schema for word in ("$ref", "allOf", "anyOf", "oneOf")):
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]} if "type" in schema else schema


def reached(node: Any, components: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the kinds and names of all components that a part of a description refers to."""
    found: list[tuple[str, str]] = []
    waiting = [node]
    while waiting:
        match waiting.pop():
            case dict() as some:
                waiting += some.values()
                if isinstance(target := some.get("$ref"), str):
                    kind, name = target.removeprefix("#/components/").split("/")
                    if (kind, name) not in found:
                        found.append((kind, name))
                        waiting.append(components[kind][name])
            case list() as some:
                waiting += some
    return found


def packed(description: dict[str, Any]) -> bytes:
    """Return a description as the bytes of its file, always the same ones."""
    return gzip.compress(json.dumps(description, separators=(",", ":")).encode(), 9, mtime=0)


def fetched(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the description that the package holds, and its licence.

    npm fetches the package into a folder and proves its checksum.
    """
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), f"{PACKAGE}@{RELEASE}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (package,) = folder.glob("*.tgz")
    with tarfile.open(package) as archive:
        return json.loads(_member(archive, MEMBER)), _member(archive, "package/LICENSE").decode()


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    found = archive.extractfile(name)
    if found is None:
        raise FileNotFoundError(name)
    return found.read()


def main() -> None:
    """Fetch the package and write the files."""
    with tempfile.TemporaryDirectory() as folder:
        whole, licence = fetched(Path(folder))
    FILE.write_bytes(packed(trimmed(whole)))
    HEADER.write_text(f"{FILE.name}\n\n{MADE}\n\n{licence}")


if __name__ == "__main__":
    main()
