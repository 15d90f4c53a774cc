"""From bytes to records: rule, place and message of everything that can be wrong, and the way back."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from gitbus.codec import Loaded, emit, kind_of_path, load, problems, read, read_any, read_as_written, write
from gitbus.codec.nodes import compose
from gitbus.errors import Invalid
from gitbus.records import KINDS, Bus, Goal, Record, Result, Task


class Smtp(BaseModel):
    model_config = ConfigDict(extra="forbid")
    transport: Literal["smtp"]
    host: str
    port: Annotated[int, Field(strict=True, ge=1, le=65535)] = 587


class Hook(BaseModel):
    model_config = ConfigDict(extra="forbid")
    transport: Literal["webhook"]
    url: str


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    name: str
    count: Annotated[int, Field(strict=True)] = 0
    from_: str | None = Field(default=None, alias="from")


class Thing(Record):
    kind: Literal["Thing"] = "Thing"
    goal: str
    confidence: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    done: Annotated[bool, Field(strict=True)] = False
    state: Literal["ready", "done"] = "ready"
    parts: tuple[Part, ...] = ()
    channels: dict[str, Annotated[Smtp | Hook, Field(discriminator="transport")]] = Field(
        default_factory=dict
    )
    text: Annotated[str, Field(strict=True, max_length=5)] | Part | None = None
    few: Annotated[tuple[str, ...], Field(max_length=1)] = ()

    @field_validator("goal")
    @classmethod
    def _not_evil(cls, value: str) -> str:
        if value == "evil":
            raise PydanticCustomError("evil_goal", "no evil", {"remedy": "be good"})
        if value == "odd":
            raise ValueError("it is odd")
        return value


HEAD = "apiVersion: gitbus/v1\nkind: Thing\n"

WRONG = [
    ("goal: a\ngaol: b\n", "unknown-field", 4, 1, "unknown field `gaol`", "did you mean `goal`?"),
    ("goal: a\nxyz: b\n", "unknown-field", 4, 1, "unknown field `xyz`", "remove it; `gitbus schema`"),
    ("done: true\n", "missing-field", 1, 1, "missing `goal`", "add it"),
    ("goal: 5\n", "wrong-type", 3, 7, "`goal` must be text, not 5", "quotes"),
    ("goal: [a]\n", "wrong-type", 3, 7, "`goal` must be text, not a list", None),
    ("goal: evil\n", "evil-goal", 3, 7, "`goal`: no evil", "be good"),
    ("goal: odd\n", "bad-value", 3, 7, "`goal` is not right: it is odd", None),
    ("goal: a\nconfidence: 1.5\n", "bad-value", 4, 13, "`confidence` must be at most 1", None),
    ("goal: a\nconfidence: -1\n", "bad-value", 4, 13, "`confidence` must be at least 0", None),
    ("goal: a\nconfidence: '1'\n", "wrong-type", 4, 13, '`confidence` must be a number, not "1"', None),
    ("goal: a\ndone: no\n", "wrong-type", 4, 7, '`done` must be true or false, not "no"', None),
    ("goal: a\nstate: don\n", "bad-value", 4, 8, "`state` must be 'ready' or 'done', not \"don\"", None),
    ("goal: a\nparts: x\n", "wrong-type", 4, 8, '`parts` must be a list, not "x"', None),
    (
        "goal: a\nparts:\n  - name: b\n    nam: c\n",
        "unknown-field",
        6,
        5,
        "unknown field `parts[0].nam`",
        "did you mean `name`?",
    ),
    (
        "goal: a\nparts:\n  - name: b\n  - count: 1\n",
        "missing-field",
        6,
        5,
        "missing `parts[1].name`",
        "add it",
    ),
    (
        "goal: a\nparts: [{name: b, count: 1.5}]\n",
        "wrong-type",
        4,
        26,
        "`parts[0].count` must be a whole number, not 1.5",
        None,
    ),
    (
        "goal: a\nparts: [{name: b, count: true}]\n",
        "wrong-type",
        4,
        26,
        "must be a whole number, not true",
        None,
    ),
    (
        "goal: a\nparts: [{name: b, from_: c}]\n",
        "unknown-field",
        4,
        19,
        "unknown field `parts[0].from_`",
        "did you mean `from`?",
    ),
    ("goal: a\nparts: [3]\n", "wrong-type", 4, 9, "`parts[0]` must be a mapping, not 3", None),
    (
        "goal: a\nchannels:\n  n:\n    transport: smtp\n    hots: h\n    host: h\n",
        "unknown-field",
        7,
        5,
        "unknown field `channels.n.hots`",
        "did you mean `host`?",
    ),
    (
        "goal: a\nchannels:\n  n:\n    transport: smtp\n    host: h\n    port: 0\n",
        "bad-value",
        8,
        11,
        "`channels.n.port` must be at least 1",
        None,
    ),
    (
        "goal: a\nchannels:\n  n:\n    transport: smpt\n",
        "bad-value",
        5,
        3,
        "`channels.n` has a `transport` that must be 'smtp', 'webhook', not 'smpt'",
        None,
    ),
    ("goal: a\nchannels:\n  n: {}\n", "missing-field", 5, 6, "missing `channels.n.transport`", "add it"),
    ("goal: a\nfew:\n- a\n- b\n", "bad-value", 4, 1, "`few` must have at most 1", None),
    ("goal: a\ntext: abcdef\n", "bad-value", 4, 7, "`text` must have at most 5", None),
    ('goal: a\n"x\\u202ey": 1\n', "unknown-field", 4, 1, "unknown field `x\\u202ey`", None),
    ("goal:\n", "wrong-type", 3, 1, "`goal` must be text, not null", None),
]


@pytest.mark.parametrize(
    ("body", "rule", "line", "column", "message", "remedy"), WRONG, ids=range(len(WRONG))
)
def test_wrong(body: str, rule: str, line: int, column: int, message: str, remedy: str | None) -> None:
    with pytest.raises(Invalid) as caught:
        read((HEAD + body).encode(), Thing, path="x.yaml")
    error = caught.value
    assert (error.rule, error.line, error.column) == (rule, line, column)
    assert message in error.message
    assert error.message.isprintable()
    assert error.path == "x.yaml"
    if remedy is not None:
        assert remedy in str(error.remedy)


def test_places_are_the_same_in_what_gitbus_wrote_and_in_json() -> None:
    data = {"apiVersion": "gitbus/v1", "kind": "Thing", "goal": "a", "parts": [{"name": 5}]}
    with pytest.raises(Invalid) as caught:
        read(emit(data).encode(), Thing)
    assert (caught.value.line, caught.value.column) == (5, 11)
    with pytest.raises(Invalid) as caught:
        read(b'{"apiVersion": "gitbus/v1", "kind": "Thing",\n"goal": "a", "parts": [{"name": 5}]}', Thing)
    assert (caught.value.line, caught.value.column) == (2, 33)


def test_everything_wrong_is_found_in_the_order_of_the_file() -> None:
    text = HEAD + "zzz: 1\ngoal: 5\nstate: x\n"
    with pytest.raises(Invalid) as caught:
        read(text.encode(), Thing, path="x.yaml")
    error = caught.value
    assert [(one.rule, one.line) for one in (error, *error.others)] == [
        ("unknown-field", 3),
        ("wrong-type", 4),
        ("bad-value", 5),
    ]
    moved = error.at("y.yaml")
    assert [one.path for one in (moved, *moved.others)] == ["y.yaml"] * 3


HEADS = [
    (
        "goal: a\n",
        ["wrong-api-version", "wrong-kind"],
        "missing `apiVersion`",
        "write `apiVersion: gitbus/v1`",
    ),
    ("apiVersion: gitbus/v1\ngoal: a\n", ["wrong-kind"], "missing `kind`", "write `kind: Thing`"),
    (
        "apiVersion: gitbus/v2\nkind: Thing\n",
        ["wrong-api-version"],
        '`apiVersion` is "gitbus/v2"',
        "gitbus/v1",
    ),
    ("apiVersion: gitbus/v1\nkind: Task\n", ["wrong-kind"], '`kind` is "Task"', "write `kind: Thing`"),
    ("apiVersion: gitbus/v1\nkind: [1]\n", ["wrong-kind"], "`kind` is a list", "write `kind: Thing`"),
]


@pytest.mark.parametrize(("text", "rules", "message", "remedy"), HEADS, ids=range(len(HEADS)))
def test_wrong_head(text: str, rules: list[str], message: str, remedy: str) -> None:
    with pytest.raises(Invalid) as caught:
        read(text.encode(), Thing)
    error = caught.value
    assert [one.rule for one in (error, *error.others)] == rules
    assert error.message == message
    assert remedy in str(error.remedy)


def test_problems_gives_the_record_where_there_is_none() -> None:
    assert problems(load((HEAD + "goal: a\n").encode()), Thing) == Thing(goal="a")


def test_a_refused_text_stays_refused() -> None:
    with pytest.raises(Invalid) as caught:
        read(b"goal: *a\n", Thing, path="x.yaml")
    assert (caught.value.rule, caught.value.place) == ("alias", "x.yaml:1:7")
    with pytest.raises(Invalid) as caught:
        read(b"x" * 11, Thing, limit=10)
    assert caught.value.rule == "too-large"


BUS = Bus.model_validate(
    {
        "name": "acme",
        "channels": {"news": {"transport": "maildir", "path": "~/x", "from": ["a@x.org"]}},
        "sending": {"hold": "90s"},
    }
)
TASK = Task.model_validate(
    {
        "goal": "a",
        "id": "b",
        "state": "ready",
        "ready_at": "2026-11-30T20:04:10Z",
        "capability": "c",
        "inputs": {"no": ["no", 1.0, 1, None], "text": "a\n b\n\n"},
    }
)


@pytest.mark.parametrize("record", [BUS, TASK], ids=["bus", "task"])
def test_what_is_written_is_read_back(record: Record) -> None:
    assert read(write(record), type(record)) == record
    assert read_any(write(record)) == record
    assert write(read(write(record), type(record))) == write(record)


@pytest.mark.parametrize("record", [BUS, TASK], ids=["bus", "task"])
def test_what_is_written_is_known_again(record: Record) -> None:
    assert read_as_written(write(record), type(record)) == (record, True)


TASK_TEXT = write(TASK).decode()


@pytest.mark.parametrize(
    "text",
    [
        TASK_TEXT + "# by hand\n",
        TASK_TEXT.replace("state: ready\n", "state: 'ready'\n"),
        TASK_TEXT.replace("history: []\n", ""),
        TASK_TEXT.replace("goal: a\nid: b\n", "id: b\ngoal: a\n"),
        TASK_TEXT.replace("20:04:10Z", "20:04:10+00:00"),
        TASK_TEXT.removesuffix("\n"),
        TASK_TEXT.replace("\n", "\r\n").replace("|+2", "|"),
    ],
    ids=["comment", "quotes", "default", "order", "offset", "newline", "crlf"],
)
def test_the_same_in_other_words_is_the_same_record(text: str) -> None:
    assert text != TASK_TEXT
    assert read_as_written(text.encode(), Task) == (TASK, False)


@given(st.integers(0, len(TASK_TEXT)), st.text(" -:\"\\|an1\n#'", max_size=3), st.integers(0, 3))
def test_a_changed_record_is_read_as_the_careful_reader_reads_it(at: int, more: str, less: int) -> None:
    text = TASK_TEXT[:at] + more + TASK_TEXT[at + less :]
    try:
        document = compose(text, "")
        careful = problems(Loaded(document.root.data(), text, "", document), Task)
    except Invalid as error:
        careful = [error]
    if isinstance(careful, list):
        with pytest.raises(Invalid) as caught:
            read_as_written(text.encode(), Task)
        assert (caught.value.rule, caught.value.line) == (careful[0].rule, careful[0].line)
    else:
        record, as_written = read_as_written(text.encode(), Task)
        assert record == careful
        assert as_written == (write(careful) == text.encode())


def test_words_in_another_case_are_not_as_written() -> None:
    base = {"goal": "a", "task": "b", "attempt": 1, "worker": "w", "status": "ok"}
    text = write(Result.model_validate(base))
    assert read_as_written(text.replace(b"status: ok", b"status: OK"), Result) == (
        Result.model_validate(base),
        False,
    )


def test_written_by_the_names_of_the_file() -> None:
    assert b"\n    from:\n      - a@x.org\n" in write(BUS)
    assert b'\nready_at: "2026-11-30T20:04:10Z"\n' in write(TASK)


KIND_PROBLEMS = [
    ("kind: Gaol\n", '`kind` is "Gaol"', "did you mean Goal?", 1, 7),
    ("kind: task\n", '`kind` is "task"', "did you mean Task?", 1, 7),
    ("kind: 5\n", "`kind` is 5", "one of Approval, Bus", 1, 7),
    ("x: 5\n", "missing `kind`", "one of Approval, Bus", 1, 1),
]


@pytest.mark.parametrize(("text", "message", "remedy", "line", "column"), KIND_PROBLEMS)
def test_no_kind(text: str, message: str, remedy: str, line: int, column: int) -> None:
    with pytest.raises(Invalid) as caught:
        read_any(text.encode())
    error = caught.value
    assert (error.rule, error.message, error.line, error.column) == ("wrong-kind", message, line, column)
    assert remedy in str(error.remedy)


PLACES = {
    "bus.yaml": "Bus",
    "presence.yaml": "Presence",
    "workers/laptop.yaml": "Worker",
    "refused/laptop.yaml": "Refusal",
    "goals/a/goal.yaml": "Goal",
    "goals/a/report.yaml": "Report",
    "goals/a/tasks/b.yaml": "Task",
    "goals/a/tasks/Not an id.yaml": "Task",
    "goals/a/results/b.yaml": "Result",
    "goals/a/refused/b.2.yaml": "Refusal",
    "outbox/a.b.c/item.yaml": "Item",
    "outbox/a.b.c/approval.yaml": "Approval",
    "outbox/a.b.c/reviews/ada.yaml": "Review",
    "outbox/a.b.c/lease.1.yaml": "Lease",
    "outbox/a.b.c/receipt.12.yaml": "Receipt",
    "outbox/a.b.c/resolution.1.yaml": "Resolution",
    "archive/2026/12/goals/a/goal.yaml": "Goal",
    "archive/2026/12/goals/a/tasks/b.yaml": "Task",
    "archive/2026/12/outbox/a.b.c/receipt.1.yaml": "Receipt",
    "bus.yml": None,
    "README.md": None,
    "x/bus.yaml": None,
    "goals/a/artifacts/b/goal.yaml": None,
    "goals/a/artifacts/b/tasks/c.yaml": None,
    "goals/a/tasks/b/c.yaml": None,
    "goals/a.yaml": None,
    "outbox/a.b.c/body.json": None,
    "outbox/a.b.c/lease.yaml": None,
    "outbox/a.b.c/attachments/item.yaml": None,
    "archive/2026/12/bus.yaml": None,
    "archive/2026/12/workers/a.yaml": None,
    "archive/2026/goals/a/goal.yaml": None,
    "archive/2026/12/archive/2026/12/goals/a/goal.yaml": None,
}


@pytest.mark.parametrize("path", PLACES)
def test_which_record_stands_where(path: str) -> None:
    kind = PLACES[path]
    assert kind_of_path(path) is (KINDS[kind] if kind else None)


def test_a_goal_as_a_human_writes_it() -> None:
    text: Any = b"""\
apiVersion: gitbus/v1
kind: Goal
id: a   # short
tasks:
  write: {capability: draft, needs: [gather]}
  gather: {capability: git-log, inputs: {since: 2026-01-01, quiet: no}}
"""
    goal = read(text, Goal)
    assert goal.tasks["gather"].inputs == {"since": "2026-01-01", "quiet": "no"}
    assert [need.task for need in goal.tasks["write"].needs] == ["gather"]


def test_of_very_many_faults_the_first_hundred_are_told() -> None:
    text = emit({"apiVersion": "gitbus/v1", "kind": "Task", **{f"x{n}": n for n in range(2000)}}).encode()
    with pytest.raises(Invalid) as caught:
        read(text, Task, path="x.yaml")
    assert len(caught.value.others) == 99
