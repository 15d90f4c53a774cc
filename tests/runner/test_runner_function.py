"""Python functions as runners."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from gitbus.records import Result
from gitbus.runner.base import Answer
from gitbus.runner.function import FunctionRunner
from tests.runner.jobs import job, now


def call(function: Any, **task: Any) -> Answer:
    return FunctionRunner(function, now=now)(job(**task), threading.Event())


def test_a_mapping_is_outputs_and_text_is_text() -> None:
    assert call(lambda task, inputs: {"id": task.id, "n": len(inputs)}).result.outputs == {
        "id": "write",
        "n": 0,
    }
    assert call(lambda task, inputs: "hello\n").result.outputs == {"text": "hello"}


def test_it_is_given_the_artifacts_of_needed_tasks() -> None:
    given = call(lambda task, inputs: inputs["a"]["f"].decode(), inputs={"a": {"f": b"x"}})
    assert given.result.outputs == {"text": "x"}


def test_a_result_stands_for_itself_and_an_answer_brings_files() -> None:
    def fn(task: Any, inputs: Any) -> Answer:
        head = {"goal": task.goal, "task": task.id, "attempt": task.attempt, "worker": "laptop"}
        return Answer(Result(**head, status="ok", confidence=0.5), {"a.txt": b"x"})

    answer = call(fn)
    assert (answer.result.confidence, answer.result.artifacts[0].path) == (0.5, "a.txt")
    assert answer.files == {"a.txt": b"x"}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda task, inputs: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda task, inputs: None, "TypeError"),
        (lambda task, inputs: {"a": object()}, "not-json"),
        (lambda task, inputs: {"a": "\x00"}, "control-character"),
        (lambda task, inputs: {"a": float("inf")}, "non-finite"),
        (lambda task, inputs: Answer(call(lambda *_: {}).result, {"../x": b""}), "bad-path"),
    ],
)
def test_what_is_wrong_is_a_failure(function: Any, words: str) -> None:
    result = call(function).result
    assert result.status == "failed"
    assert result.error is not None
    assert words in result.error.message


def test_the_schema_is_checked() -> None:
    assert call(lambda task, inputs: {"n": 1}, outputs={"required": ["m"]}).result.status == "failed"
