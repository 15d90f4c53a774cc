"""What ``--json`` prints is what ``gitbus schema`` says, on buses where each document has something in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer.main
from jsonschema import Draft202012Validator

from gitbus import documents
from gitbus.bus import Bus
from gitbus.cli import run
from gitbus.records import KINDS
from tests.journeys.driving import UNKNOWN, approved_item, on, send
from tests.support.world import (
    ITEM,
    World,
    function_worker,
    make_world,
    ok,
    step_all,
    waiting_item,
)


def commands() -> dict[tuple[str, ...], Any]:
    """Return every command by its words."""
    from gitbus.cli.app import app

    group = typer.main.get_command(app)
    found: dict[tuple[str, ...], Any] = {}
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found |= {(name, word): one for word, one in inner.items()} if inner else {(name,): command}
    return found


def printed(world: World, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run a command with --json, hold its output against the published schema, and return it."""
    capsys.readouterr()
    run(["-C", str(world.clone), *arguments, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["apiVersion"] == "gitbus/v1"
    run(["schema", document["kind"]])
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(document)
    return document


def refused_everywhere(bus: Bus) -> None:
    """Let a task die of answers that do not pass, and skip another for want of a worker."""
    bus.add_goal(
        b"apiVersion: gitbus/v1\nkind: Goal\nid: dying\ntasks:\n"
        b"  bad: {capability: bad, max_attempts: 1, outputs: {required: [n]}}\n"
        b"  lone: {capability: nobody}\n"
    )
    worker = function_worker(bus, "clumsy", {"bad": lambda task: ok(task, "clumsy", outputs={"m": 1})})
    step_all(bus, [worker])
    worker.close()


def test_every_command_with_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = make_world(tmp_path)
    with waiting_item(world) as bus:
        refused_everywhere(bus)
        seen = {
            words: printed(world, capsys, *words, *more)
            for words, more in {
                ("status",): [],
                ("missing",): [],
                ("dead",): [],
                ("review",): [],
                ("goal", "list"): [],
                ("task", "show"): ["release/mail"],
                ("task", "next"): ["--worker", "laptop"],
                ("worker", "list"): [],
                ("person", "list"): [],
                ("log",): [],
                ("audit",): [],
                ("doctor",): [],
            }.items()
        }
        assert seen["missing",]["capabilities"] == [{"capability": "nobody", "tasks": ["dying/lone"]}]
        [letter] = seen["dead",]["tasks"]
        assert (letter["goal"], letter["task"]) == ("dying", "bad")
        assert seen["review",]["items"] == [{"id": ITEM, "state": "awaiting_approval"}]
        assert printed(world, capsys, "review", ITEM)["payload"] == {"body.txt": "Hello,\nit is out.\n"}
        assert {one["state"] for one in seen["status",]["goals"][0]["tasks"]} == {"dead", "skipped"}
        bus.approve([ITEM])
        on(bus)
        send(bus, UNKNOWN)
        seen["stuck",] = printed(world, capsys, "stuck")
        assert [one["id"] for one in seen["stuck",]["items"]] == [ITEM]
        seen["receipt",] = printed(world, capsys, "receipt", ITEM)
        assert seen["receipt",]["receipts"][0]["outcome"] == "unknown"
        seen["send",] = printed(world, capsys, "send")
        offering = {
            words
            for words, command in commands().items()
            if any("--json" in one.opts for one in command.params)
        }
        assert offering == set(seen)


def test_sent_says_what_was_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = make_world(tmp_path)
    with approved_item(world):
        assert printed(world, capsys, "send", "--dry-run")["items"][0]["outcome"] == "would-send"
        [sent] = printed(world, capsys, "send")["items"]
        assert sent["reason"].startswith("delivered as ")
        assert sent == {
            "id": ITEM,
            "outcome": "sent",
            "reason": sent["reason"],
            "receipt": f"outbox/{ITEM}/receipt.1.yaml",
        }


def test_problems_of_a_broken_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = make_world(tmp_path)
    waiting_item(world).close()
    world.git("pull", "--quiet")
    (world.clone / "outbox" / ITEM / "item.yaml").write_text("kind: Item\n", "utf-8")
    world.git("commit", "--quiet", "--no-gpg-sign", "-am", "slip")
    world.git("push", "--quiet", "origin", "HEAD:main")
    found = printed(world, capsys, "status")
    assert found["items"][0]["state"] == "broken"
    [problem] = found["problems"]
    assert problem["path"] == f"outbox/{ITEM}/item.yaml"
    assert "problems" not in documents.json_schema("Status")["required"]  # type: ignore[index]


@pytest.mark.long
def test_an_empty_bus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = make_world(tmp_path)
    for words in ("status", "missing", "dead", "stuck", "review", "log", "audit", "send"):
        printed(world, capsys, words)
    assert printed(world, capsys, "task", "next", "--worker", "nobody")["task"] is None


def test_every_kind_has_a_schema_and_no_two_share_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    listed = capsys.readouterr().out.split()
    assert set(listed) == {*KINDS, *documents.DOCUMENTS}
    assert len(listed) == len(KINDS) + len(documents.DOCUMENTS)
    for kind in listed:
        schema = documents.json_schema(kind.upper())
        assert schema is not None
        Draft202012Validator.check_schema(schema)
        assert schema["properties"]["kind"]["const"] == kind


def test_no_such_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "Nonsense"]) == 2
    assert "Status" in capsys.readouterr().err
