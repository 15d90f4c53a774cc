"""Commands run for real: what they are given, what is taken from them, what fails them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from gitbus import codec, ids
from gitbus.records import Result
from gitbus.runner.adapters import JSON, TEXT
from gitbus.runner.command import CommandRunner, mislaid, words_of
from tests.runner.jobs import NOW, ask, job, now, python, quote, sh

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def test_printed_text_becomes_outputs_text_without_the_newlines_at_its_end() -> None:
    answer = ask(sh("printf 'one\\ntwo\\n\\n'"))
    assert answer.result.outputs == {"text": "one\ntwo"}
    assert (answer.result.goal, answer.result.task, answer.result.attempt, answer.result.worker) == (
        "release",
        "write",
        2,
        "laptop",
    )
    assert answer.result.started_at == answer.result.finished_at == NOW


@pytest.mark.parametrize(
    ("printed", "outputs"),
    [
        ('{"n": 1, "list": [true, null, 1.5]}', {"n": 1, "list": [True, None, 1.5]}),
        ('  {"n": 1}\n', {"n": 1}),
        ("[1, 2]", {"text": "[1, 2]"}),
        ("{not json}", {"text": "{not json}"}),
        ("grüße 🎈", {"text": "grüße 🎈"}),
        ("a\r\nb\r\n", {"text": "a\nb"}),
        ("", {}),
    ],
)
def test_what_is_printed_is_an_object_or_text(printed: str, outputs: object, tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_bytes(printed.encode())
    answer = ask(sh(f"cat {quote(file)}"))
    assert answer.result.status == "ok"
    assert answer.result.outputs == outputs


def test_the_task_is_on_stdin_and_in_a_file_and_the_inputs_below_a_folder() -> None:
    script = (
        "import json, os, sys; e = os.environ; task = json.load(sys.stdin);"
        "same = task == json.load(open(e['GITBUS_TASK'], encoding='utf-8'));"
        "text = open(e['GITBUS_INPUTS'] + '/gather/deep/notes.md').read();"
        "print(json.dumps({'same': same, 'inputs': task['inputs'], 'text': text}))"
    )
    given = job(inputs={"gather": {"deep/notes.md": b"hello"}, "empty": {}})
    assert ask(python(script), given).result.outputs == {"same": True, "inputs": {}, "text": "hello"}


def test_a_result_in_yaml_keeps_what_was_written_and_gets_the_rest() -> None:
    written = """
confidence: 0.9
outputs: {n: 3}
evidence: [{id: e1, kind: file, ref: notes.md}]
claims: [{text: It works., provenance: fact, evidence: [e1]}]
items:
- {name: announce, channel: news, message: {subject: Hi, to: [a@b.example], text: notes.md}}
usage: {tokens_in: 5}
"""
    answer = ask(
        sh(
            f"printf hello > $GITBUS_ARTIFACTS/notes.md; cat > $GITBUS_RESULT <<'E'\n{written}\nE\necho ignored"
        )
    )
    result = answer.result
    assert (result.status, result.outputs, result.confidence) == ("ok", {"n": 3}, 0.9)
    assert result.items[0].message.subject == "Hi"
    assert answer.files == {"notes.md": b"hello"}
    [artifact] = result.artifacts
    assert (artifact.path, artifact.sha256, artifact.bytes) == ("notes.md", ids.sha256(b"hello"), 5)
    assert artifact.media_type == "text/markdown"
    assert codec.read(codec.write(result), Result) == result


def test_a_result_can_say_that_it_failed_or_wants_another_try() -> None:
    failed = ask(sh("echo '{status: failed, error: {message: no luck}}' > $GITBUS_RESULT; exit 3")).result
    assert (failed.status, failed.error and failed.error.message) == ("failed", "no luck")
    retry = ask(sh("echo '{status: retry, after: 2h}' > $GITBUS_RESULT; exit 75")).result
    assert (retry.status, retry.after and retry.after.total_seconds()) == ("retry", 7200)


@pytest.mark.parametrize(
    ("script", "status", "message"),
    [
        ("echo one >&2; echo two >&2; exit 1", "failed", "exit code 1: two"),
        ("exit 1", "failed", "exit code 1"),
        ("echo later >&2; exit 75", "retry", "later"),
        ("kill -KILL $$", "failed", "killed by SIGKILL"),
        ("echo '{status: ok}' > $GITBUS_RESULT; exit 2", "failed", "exit code 2"),
        ("echo '{' > $GITBUS_RESULT; exit 2", "failed", "exit code 2"),
    ],
)
def test_an_exit_code_says_how_it_ended(script: str, status: str, message: str) -> None:
    result = ask(sh(script)).result
    assert (result.status, result.error and result.error.message) == (status, message)


def test_a_failed_attempt_leaves_no_files() -> None:
    assert ask(sh("echo half > $GITBUS_ARTIFACTS/half.md; exit 1")).files == {}


def test_the_end_of_stderr_is_kept_bounded_and_harmless() -> None:
    result = ask(
        python(
            "import sys; sys.stderr.buffer.write(b'x' * 5_000_000 + b'\\x1b[31m\\xff\\x00end\\n'); sys.exit(1)"
        )
    ).result
    assert result.error is not None
    assert result.error.detail is not None
    assert len(result.error.detail) <= 8000
    assert "\x1b" not in result.error.detail
    assert result.error.detail.endswith("x� end\n")
    assert len(result.error.message) <= 500


def test_a_program_that_is_not_there_is_a_failure() -> None:
    result = ask(CommandRunner(("no-such-program",), now=now)).result
    assert result.error is not None
    assert result.error.message == "no-such-program cannot be started: No such file or directory"
    assert ask(CommandRunner(("git", "a\0b"), now=now)).result.status == "failed"
    assert ask(CommandRunner(("true",), cwd="/no/such/folder", now=now)).result.status == "failed"


# --- what the conductor would refuse


@pytest.mark.parametrize(
    ("script", "rule"),
    [
        ('printf \'{"a": 1, "a": 2}\'', "duplicate-key"),
        ("printf '{\"a\": NaN}'", "non-finite"),
        ("printf '{\"a\": 1e999}'", "non-finite"),
        ('printf \'{"a": "\\\\u0000"}\'', "control-character"),
        ('printf \'{"a": "\\\\ud800"}\'', "control-character"),
        ("printf 'a\\0b'", "control-character"),
        ("printf '\\377\\376x'", "not-utf8"),
        ("echo 'a: 1' > $GITBUS_RESULT", "unknown-field"),
        ("printf 'outputs: {a: 1}\\noutputs: {}' > $GITBUS_RESULT", "duplicate-key"),
        ("printf 'a: &x 1\\nb: *x' > $GITBUS_RESULT", "alias"),
        ("printf '\\377' > $GITBUS_RESULT", "not-utf8"),
        (": > $GITBUS_RESULT", "empty"),
        ("echo 'claims: [{text: x, provenance: FACT}]' > $GITBUS_RESULT", "fact-without-evidence"),
        ("echo 'status: failed' > $GITBUS_RESULT", "failed-without-error"),
        ("echo '{attempt: 1}' > $GITBUS_RESULT", "wrong-task"),
        ("echo '{worker: other}' > $GITBUS_RESULT", "wrong-task"),
        ("ln -s /etc/hostname $GITBUS_RESULT", "forbidden-kind"),
        ("mkfifo $GITBUS_RESULT", "forbidden-kind"),
        ("mkdir $GITBUS_RESULT", "forbidden-kind"),
        ("ln -s /etc/passwd $GITBUS_ARTIFACTS/x", "forbidden-kind"),
        ("ln -s /etc $GITBUS_ARTIFACTS/x", "forbidden-kind"),
        ("mkfifo $GITBUS_ARTIFACTS/x", "forbidden-kind"),
        ("rm -r $GITBUS_ARTIFACTS; ln -s /etc $GITBUS_ARTIFACTS", "forbidden-kind"),
        ("echo x > $GITBUS_ARTIFACTS/.git", "bad-path"),
        ("mkdir $GITBUS_ARTIFACTS/con; echo x > $GITBUS_ARTIFACTS/con/a", "bad-path"),
        ('echo x > "$GITBUS_ARTIFACTS/a b"', "bad-path"),
        ("cd $GITBUS_ARTIFACTS; mkdir -p a/a/a/a/a/a/a/a; echo x > a/a/a/a/a/a/a/a/a", "bad-path"),
        ("echo x > $GITBUS_ARTIFACTS/A; echo x > $GITBUS_ARTIFACTS/a", "path-collision"),
        ("truncate -s 1T $GITBUS_ARTIFACTS/huge", "too-large"),
        (f"echo 'artifacts: [{{path: ../x, bytes: 1, sha256: {'f' * 64}}}]' > $GITBUS_RESULT", "bad-path"),
        ("echo '{artifacts: [{path: gone.md}]}' > $GITBUS_RESULT", "missing-field"),
        (
            f"echo x > $GITBUS_ARTIFACTS/a; echo 'artifacts: [{{path: a, sha256: {'f' * 64}}}]' > $GITBUS_RESULT",
            "artifact-mismatch",
        ),
        (
            "echo x > $GITBUS_ARTIFACTS/a; echo 'artifacts: [{path: a, bytes: 1}]' > $GITBUS_RESULT",
            "artifact-mismatch",
        ),
        (
            f"echo 'artifacts: [{{path: a, bytes: 1, sha256: {'f' * 64}}}]' > $GITBUS_RESULT",
            "artifact-missing",
        ),
    ],
)
def test_what_would_be_refused_fails_with_the_rule(script: str, rule: str) -> None:
    answer = ask(sh(script))
    assert answer.result.status == "failed"
    assert answer.result.error is not None
    assert answer.result.error.message.startswith(f"{rule}: ")
    assert answer.files == {}


def test_a_name_that_is_no_text_is_refused() -> None:
    result = ask(python("import os; open(os.environb[b'GITBUS_ARTIFACTS'] + b'/\\xff\\n', 'w')")).result
    assert result.error is not None
    assert result.error.message.startswith("bad-path: ")
    assert "\n" not in result.error.message


@pytest.mark.parametrize("levels", [61, 65, 5000, 200_000])
def test_deep_nesting_is_refused_past_what_a_record_may_have(levels: int) -> None:
    script = f"print('{{\"a\": ' + '[' * {levels} + ']' * {levels} + '}}')"
    result = ask(python(script)).result
    if levels == 61:
        assert result.status == "ok"
    else:
        assert result.error is not None
        assert result.error.message.startswith("too-deep: ")


def test_the_raw_text_goes_along_with_a_refused_answer() -> None:
    result = ask(sh("""printf '{"a": 1, "a": 2}'""")).result
    assert result.error is not None
    assert result.error.detail == '{"a": 1, "a": 2}'


def test_outputs_must_meet_the_tasks_schema() -> None:
    assert ask(sh("""echo '{"n": 1}'"""), job(outputs=SCHEMA)).result.status == "ok"
    result = ask(sh("""echo '{"n": "one"}'"""), job(outputs=SCHEMA)).result
    assert result.error is not None
    assert result.error.message == "outputs-schema: outputs.n: 'one' is not of type 'integer'"
    assert result.error.detail == '{"n": "one"}\n'
    assert ask(sh("echo '{status: retry}' > $GITBUS_RESULT"), job(outputs=SCHEMA)).result.status == "retry"


# --- bounds


def test_ten_megabytes_on_a_line_are_too_much_and_never_block() -> None:
    result = ask(
        python("import sys; sys.stdout.write('x' * 10_000_000); sys.stderr.write('y' * 10_000_000)")
    ).result
    assert result.error is not None
    assert result.error.message == "too-large: more than 1048576 bytes were printed"


def test_limits_are_those_of_the_bus() -> None:
    limits = {"record": 4096, "artifact": 10, "artifacts": 15}
    assert ask(sh("printf 0123456789 > $GITBUS_ARTIFACTS/a"), job(limits=limits)).result.status == "ok"
    for script in (
        "printf 0123456789a > $GITBUS_ARTIFACTS/a",
        "cd $GITBUS_ARTIFACTS; printf 0123456789 > a; printf 0123456789 > b",
        "printf '%5000s' x",
        'printf \'{"outputs": {"a": "%5000s"}}\' x > $GITBUS_RESULT',
    ):
        result = ask(sh(script), job(limits=limits)).result
        assert result.error is not None
        assert result.error.message.startswith("too-large: ")


def test_more_than_a_thousand_files_are_too_many() -> None:
    script = "import os; [open(f\"{os.environ['GITBUS_ARTIFACTS']}/{n}\", 'w') for n in range(1001)]"
    result = ask(python(script)).result
    assert result.error is not None
    assert result.error.message.startswith("too-large: ")


# --- surroundings


def test_the_environment_is_a_few_names_and_those_that_were_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "ACME_SMTP_PASSWORD",
        "GITBUS_ROOT",
        "SSH_AUTH_SOCK",
        "GH_TOKEN",
        "API_KEY",
        "LC_TIME",
        "PYTHONPATH",
    ):
        monkeypatch.setenv(name, f"value of {name}")
    runner = python("import json, os; print(json.dumps(sorted(os.environ)))", env=("API_KEY", "NOT_SET"))
    seen = set(json.loads(ask(runner).result.outputs["text"]))
    given = {"GITBUS_TASK", "GITBUS_INPUTS", "GITBUS_ARTIFACTS", "GITBUS_RESULT"}
    assert given | {"API_KEY", "LC_TIME", "PATH", "HOME"} <= seen
    assert seen <= given | {"API_KEY"} | {name for name in os.environ if name.startswith("LC_")} | {
        *("PATH", "HOME", "LANG", "TZ", "TERM", "USER", "TMPDIR")
    }


def test_it_runs_in_a_folder_of_its_own_that_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    script = "pwd; stat -c %a $(dirname $(dirname $PWD)); ls -A; mkdir -p locked/in; chmod 0 locked"
    folder, mode = ask(sh(script)).result.outputs["text"].splitlines()
    assert Path(folder).is_relative_to(tmp_path)
    assert mode == "700"
    assert list(tmp_path.iterdir()) == []


def test_cwd_runs_it_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "worker.sh").write_text("cat here.txt\n")
    (tmp_path / "here.txt").write_text("found")
    assert ask(CommandRunner(("sh", "worker.sh"), cwd=tmp_path, now=now)).result.outputs == {"text": "found"}


def test_a_program_named_by_a_relative_path_is_found_from_where_the_worker_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "worker"
    script.write_text("#!/bin/sh\necho here\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert ask(CommandRunner(("./worker",), now=now)).result.outputs == {"text": "here"}


def test_a_file_that_the_command_will_not_find_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "worker.py").touch()
    monkeypatch.chdir(tmp_path)
    assert "--cwd ." in (mislaid(("python", "worker.py"), None) or "")
    assert mislaid(("python", "worker.py"), ".") is None
    assert mislaid(("python", str(tmp_path / "worker.py"), "-v"), None) is None


def test_the_words_of_a_command() -> None:
    assert words_of("python 'my worker.py' $HOME") == ("python", "my worker.py", "$HOME")
    assert words_of(["git", "log"]) == ("git", "log")


def test_stdin_that_nobody_reads_is_no_error() -> None:
    assert ask(sh("exec true"), job(inputs={}, prompt="x" * 500_000)).result.status == "ok"


# --- adapters json and text


def test_json_takes_an_object_and_nothing_else() -> None:
    assert ask(sh("""echo '{"n": 1}'""", adapter=JSON)).result.outputs == {"n": 1}
    for printed in ("hello", "[1]", ""):
        result = ask(sh(f"printf '%s' '{printed}'", adapter=JSON)).result
        assert result.status == "failed"


def test_text_takes_everything_as_text() -> None:
    assert ask(sh("""echo '{"n": 1}'""", adapter=TEXT)).result.outputs == {"text": '{"n": 1}'}


def test_a_whole_result_may_be_printed() -> None:
    script = """echo '{"kind": "Result", "confidence": 0.5, "outputs": {"n": 1}}'"""
    result = ask(sh(script)).result
    assert (result.confidence, result.outputs) == (0.5, {"n": 1})


def test_the_program_can_be_a_script_of_this_python() -> None:
    assert ask(CommandRunner((sys.executable, "-c", "print(40 + 2)"), now=now)).result.outputs == {
        "text": "42"
    }
