"""The docs are true: links lead somewhere, commands exist, and what a newcomer types works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from gitbus.proof.values import RULES

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
NAMES = {page.relative_to(ROOT).as_posix(): page for page in PAGES}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    page = NAMES[name]
    for target, _ in LINK.findall(page.read_text("utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{name}: {target}"


def commands() -> dict[str, set[str]]:
    """Return every command, and the words that may follow a group's name."""
    from gitbus.cli.app import app

    group = typer.main.get_command(app)
    found = {}
    for name, command in group.commands.items():
        found[name] = set(getattr(command, "commands", {}))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_commands_exist(name: str) -> None:
    known = commands()
    for first, second in re.findall(r"\bgitbus ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", code_of(NAMES[name])):
        assert first in known, f"{name}: gitbus {first}"
        if known[first] and second:
            assert second in known[first], f"{name}: gitbus {first} {second}"


def code_of(page: Path) -> str:
    text = page.read_text("utf-8")
    return "\n".join(
        [
            *(body for kind, body in FENCE.findall(text) if kind == "sh"),
            *re.findall(r"`(gitbus [^`]+)`", text),
        ]
    )


def script_of(page: Path) -> str:
    """Return what a reader types, in order; a YAML block that begins with a file's name becomes that file."""
    parts = ["set -e"]
    for kind, body in FENCE.findall(page.read_text("utf-8")):
        if kind == "sh":
            parts += [line for line in body.splitlines() if "-m venv" not in line]
        elif kind == "yaml" and (named := re.match(r"# (\S+\.yaml)\n", body)):
            parts.append(f"cat > {named[1]} <<'END_OF_FILE'\n{body}END_OF_FILE")
    return "\n".join(parts) + "\n"


@pytest.mark.parametrize("name", ["README.md", pytest.param("docs/quickstart.md", marks=pytest.mark.long)])
def test_what_a_newcomer_types_works(name: str, tmp_path: Path, isolated: Path) -> None:
    (isolated / ".gitconfig").write_text(
        "[user]\n\tname = Ada Lovelace\n\temail = ada@acme.example\n", "utf-8"
    )
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "gitbus").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gitbus "$@"\n', "utf-8")
    (bin_folder / "gitbus").chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", script_of(NAMES[name])],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if name == "docs/quickstart.md":
        assert len(list((isolated / "preview" / "new").iterdir())) == 1
        assert "audit ok" in done.stdout


def test_the_table_of_refusals_is_in_step() -> None:
    text = (ROOT / "docs" / "security.md").read_text("utf-8")
    table = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", text.split("<!-- /rules -->")[0], re.MULTILINE))
    assert table == dict(RULES)


def test_what_ci_runs_is_what_the_readme_says() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(re.findall(r"^python3 -m venv .*pytest.*$", readme, re.MULTILINE)) == 1
    assert len(re.findall(r"^python3 -m venv .*gitbus demo.*$", readme, re.MULTILINE)) == 1
