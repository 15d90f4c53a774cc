"""What `gitbus init --github` writes: linted, and read for what has to hold of every workflow."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitbus.errors import Misuse, Refused
from gitbus.forge.github.setup.beginning import account, files, superfluous
from gitbus.forge.github.setup.rendering import STUBS, WORKFLOWS, Setting, rendered
from tests.github.runner import parsed

ROOT = Path(__file__).resolve().parents[2]
OID = "1a2b3c4d5e6f7081920a1b2c3d4e5f6071829304"
MAIL = ("ACME_SMTP_PASSWORD", "CRM_HOOK_SECRET")
AGENTS = {"notes": ("ANTHROPIC_API_KEY",), "mail": ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"), "plain": ()}
SETTINGS = {
    "alone": Setting("main", OID, "1.2.3"),
    "alone, furnished": Setting("main", OID, "1.2.3", secrets=MAIL, workers=AGENTS, owners=("ada-l", "bob")),
    "app": Setting("main", OID, "1.2.3", app=True),
    "app, furnished": Setting(
        "main", OID, "1.2.3", app=True, secrets=MAIL, workers=AGENTS, owners=("ada-l",)
    ),
    "beside": Setting("gitbus/bus", OID, "1.2.3", secrets=MAIL, workers=AGENTS, default="main"),
    "app beside": Setting(
        "gitbus/bus", OID, "1.2.3", app=True, secrets=MAIL, workers=AGENTS, default="trunk"
    ),
}
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
SECRET = re.compile(r"secrets\.([A-Za-z_][A-Za-z0-9_]*)")


def workflows(setting: Setting) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, data in rendered(setting).items():
        if path.endswith(".yml"):
            yield path, parsed(data)


def jobs(setting: Setting) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, workflow in workflows(setting):
        for name, job in workflow["jobs"].items():
            yield f"{path} {name}", job


every = pytest.mark.parametrize("setting", SETTINGS.values(), ids=list(SETTINGS))


# --- linters


def program(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:/usr/bin:/bin")
    if found is None:
        pytest.skip(f"{name} is not here")
    return found


def lint(*words: str | Path) -> None:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": path, "HOME": "/nonexistent"},
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write every file of every setting, each setting as a repository of its own."""
    found = []
    for name, setting in SETTINGS.items():
        folder = tmp_path_factory.mktemp(name.replace(" ", "-").replace(",", ""))
        for path, data in files(setting).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            found.append(target)
    return [path for path in found if path.suffix == ".yml"]


def test_actionlint_finds_nothing(written: list[Path]) -> None:
    lint(program("actionlint"), "-no-color", *written)


def test_zizmor_finds_nothing(written: list[Path]) -> None:
    lint(program("zizmor"), "--offline", "--quiet", "--no-config", *written)


def test_the_schema_finds_nothing(written: list[Path]) -> None:
    lint(program("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *written)


def test_nothing_is_ignored(written: list[Path]) -> None:
    """A linter that is told to look away finds nothing either."""
    for path in written:
        assert "zizmor:" not in path.read_text("utf-8")
        assert "shellcheck disable" not in path.read_text("utf-8")


OWN = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = ROOT / ".github" / "actions" / "gitbus" / "action.yml"


def test_our_own_workflows_and_action_are_linted() -> None:
    lint(program("actionlint"), "-no-color", *OWN)
    lint(program("zizmor"), "--offline", "--quiet", "--no-config", *OWN, ACTION)
    lint(program("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *OWN)
    lint(program("check-jsonschema"), "--builtin-schema", "vendor.github-actions", ACTION)


# --- what has to hold


@every
def test_a_job_has_few_rights_little_time_and_says_so(setting: Setting) -> None:
    for path, workflow in workflows(setting):
        assert workflow["permissions"] == {}, path
        assert "pull_request_target" not in workflow["on"], path
        assert "-euo pipefail" in workflow["defaults"]["run"]["shell"], path
    for name, job in jobs(setting):
        assert isinstance(job["permissions"], dict), name
        assert 0 < job["timeout-minutes"] <= 120, name


@every
def test_no_expression_stands_in_a_command(setting: Setting) -> None:
    for name, job in jobs(setting):
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), name


@every
def test_actions_are_pinned_and_history_is_whole(setting: Setting) -> None:
    for path, data in rendered(setting).items():
        for line in data.decode().splitlines():
            if " uses:" in line:
                assert re.search(r"uses: [a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), (
                    f"{path}: {line}"
                )
    for name, job in jobs(setting):
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                wanted = {"fetch-depth": 0, "filter": "blob:none", "persist-credentials": False}
                assert step["with"] == wanted, name


@every
def test_secrets_are_in_their_environment_alone(setting: Setting) -> None:
    """Channels' secrets: the job that sends. Workers': theirs. The App's key: where nothing else runs."""
    for name, job in jobs(setting):
        used = set(SECRET.findall(str(job)))
        allowed: dict[str | None, set[str]] = {
            "gitbus-send": {*MAIL, "GITBUS_APP_KEY"},
            "gitbus-conduct": {"GITBUS_APP_KEY"},
            "gitbus-work": {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
            None: set(),
        }
        assert used <= allowed[job.get("environment")], name


@every
def test_what_runs_a_worker_cannot_push(setting: Setting) -> None:
    found = [
        job for _, job in jobs(setting) if any("gitbus work" in step.get("run", "") for step in job["steps"])
    ]
    assert len(found) == 1
    assert found[0]["permissions"] == {"contents": "read"}
    assert "GITBUS_APP" not in str(found[0])


@every
def test_a_worker_gets_no_other_workers_secret(setting: Setting) -> None:
    from tests.github.expressions import filled

    for _, job in jobs(setting):
        for step in job["steps"]:
            if "gitbus work" not in step.get("run", ""):
                continue
            for worker, names in setting.workers.items():
                secrets = {name: f"the {name}" for name in (*AGENTS["mail"], "GITHUB_TOKEN")}
                contexts = {"matrix": {"worker": worker}, "secrets": secrets, "github": {"token": "t"}}
                given = filled(step["env"], contexts)
                seen = {name for name in AGENTS["mail"] if given.get(name)}
                assert seen == set(names), worker


@every
def test_jobs_with_secrets_run_on_the_bus_branch_alone(setting: Setting) -> None:
    """Every job that may do something needs, directly or not, the condition that names the branch."""
    for path, workflow in workflows(setting):
        if path.startswith(STUBS) or path.endswith("gitbus-check.yml"):
            continue
        for name, job in workflow["jobs"].items():
            assert name == "relay" or _guarded(workflow["jobs"], name, setting.branch), f"{path} {name}"
            assert name == "relay" or "actions" not in job["permissions"] or name == "again"


def _guarded(found: Mapping[str, Any], name: str, branch: str) -> bool:
    job = found[name]
    if job.get("if") == f"github.ref == 'refs/heads/{branch}'":
        return True
    needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
    first = needs[0] if needs else None
    condition = str(job.get("if", ""))
    follows = "!cancelled()" not in condition or f"needs.{first}.result == 'success'" in condition
    return first is not None and follows and _guarded(found, first, branch)


@every
def test_the_root_is_written_into_what_sends(setting: Setting) -> None:
    for path, workflow in workflows(setting):
        assert workflow["env"]["GITBUS_ROOT"] == OID, path
        assert workflow["env"]["GITBUS_VERSION"] == "1.2.3", path


def test_stubs_only_where_the_default_branch_is_another() -> None:
    assert not any(path.startswith(STUBS) for path in rendered(SETTINGS["app"]))
    beside = [path for path in rendered(SETTINGS["app beside"]) if path.startswith(STUBS)]
    assert beside == [f"{STUBS}gitbus-{name}.yml" for name in ("conduct", "work", "send")]


def test_both_ways_to_run_do_not_stand_side_by_side() -> None:
    for setting in SETTINGS.values():
        assert not set(superfluous(setting)) & set(rendered(setting))
    assert f"{WORKFLOWS}gitbus.yml" in superfluous(SETTINGS["app"])
    assert f"{WORKFLOWS}gitbus-send.yml" in superfluous(SETTINGS["alone"])


def test_the_guide_names_every_secret_and_ruleset() -> None:
    text = files(SETTINGS["app, furnished"])["SETUP.md"].decode()
    for word in (*MAIL, "ANTHROPIC_API_KEY", "GITBUS_APP_KEY", "gitbus: who writes the bus", OID):
        assert word in text
    assert "__" not in text
    assert "#:" not in text


NASTY = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)


@given(NASTY)
def test_a_name_that_a_workflow_cannot_hold_is_refused(name: str) -> None:
    """Whatever is let in is no more than a word."""
    for setting in (Setting(name, OID, "1"), Setting("main", OID, "1", secrets=(name,))):
        try:
            made = rendered(setting)
        except Refused:
            continue
        assert re.fullmatch(r"[A-Za-z0-9._/-]+|[A-Za-z_][A-Za-z0-9_]*", name)
        for _, workflow in ((path, parsed(data)) for path, data in made.items() if path.endswith(".yml")):
            assert set(workflow) >= {"on", "jobs", "permissions"}


@pytest.mark.parametrize("text", ["ada", "ada:", "ada:0", ":1", "ada:1:2", "a b:1", "-ada:1", "ada:x"])
def test_an_approver_is_a_login_and_a_number(text: str) -> None:
    with pytest.raises(Misuse):
        account(text)


def test_an_approver_is_read() -> None:
    assert account("ada-l:1234567") == ("ada-l", 1234567)
