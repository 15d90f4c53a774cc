"""The demo: a newcomer's first minute. Every step is a real command, shown before it runs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import gitbus
from gitbus import making
from gitbus.cli.output import console, note, safe, say
from gitbus.errors import GitbusError, Refused
from gitbus.hub.run import environment

ITEM = "announce.mail.news"
OWN_STORY = (
    ("parser.py", "def parse(text):\n    return text.split()\n", "Add a parser"),
    ("parser.py", "def parse(text):\n    return [one for one in text.split() if one]\n", "Skip empty words"),
    ("README.md", "# Parser\n\nSplits text into words.\n", "Say what it does"),
    (
        "parser.py",
        "def parse(text, sep=None):\n    return text.split(sep)\n",
        "Let callers choose the separator",
    ),
)


@dataclass(frozen=True)
class _Stage:
    folder: Path
    step: bool

    def tell(self, text: str) -> None:
        say(f"\n[bold cyan]{text}[/]")

    def run(self, *arguments: str, expect: tuple[int, ...] = (0,)) -> None:
        """Show a command, wait for Enter where that is wanted, and run it."""
        shown = " ".join(_shown(one) for one in arguments)
        say(f"[bold]$[/] gitbus {safe(shown)}")
        if self.step and sys.stdin.isatty():
            input("  (Enter) ")
        sys.stdout.flush()
        colour = {"FORCE_COLOR": "1"} if console().is_terminal else {}
        done = subprocess.run(
            [sys.executable, "-m", "gitbus", "-q", *arguments],
            cwd=self.folder,
            check=False,
            env={**os.environ, **colour, "GITBUS_ROOT": "", "CI": ""},
            stdin=subprocess.DEVNULL,
        )
        if done.returncode not in expect:
            raise Refused(f"the demo's step `gitbus {shown}` failed", rule="demo-failed")


def _shown(argument: str) -> str:
    home = str(Path.home())
    return (
        shlex.quote(argument.replace(sys.executable, "python3"))
        if " " in argument
        else argument.replace(home, "~")
    )


def files() -> Path:
    """Return the folder with the demo's goal and workers."""
    inside = Path(gitbus.__file__).parent / "_demo"
    return (
        inside if inside.is_dir() else Path(gitbus.__file__).parents[1] / "examples" / "release-announcement"
    )


def play(directory: Path, *, step: bool) -> None:
    """Play the whole story in a folder that does not exist yet.

    Raises:
        Refused: the folder is in the way, or a step failed.
    """
    folder = directory.resolve()
    if folder.exists() and any(folder.iterdir()):
        raise Refused(
            f"{directory} exists and is not empty",
            rule="exists",
            remedy="remove it, or name another: gitbus demo DIR",
        )
    folder.mkdir(parents=True, exist_ok=True)
    repository, project = _history(folder)
    clone, mail = folder / "bus", folder / "mail"
    _make(folder, clone, mail)
    stage = _Stage(clone, step)
    say(f"[bold]gitbus demo[/] in {safe(directory)}, on the history of {safe(project)}")
    stage.tell("1. A goal: three tasks that workers can do, and one that nobody can")
    workers = files()
    python = shlex.quote(sys.executable)
    stage.run(
        "run",
        str(workers / "goal.yaml"),
        *("-i", f"repository={repository}", "-i", f"project={project}"),
        *("--worker", f"git-log={python} {shlex.quote(str(workers / 'gather.py'))}"),
        *("--worker", f"release-notes={python} {shlex.quote(str(workers / 'notes.py'))}"),
        *("--worker", f"compose-email={python} {shlex.quote(str(workers / 'compose.py'))}"),
        expect=(1,),
    )
    stage.tell("2. The goal went on without a picture, and says which worker to build next")
    stage.run("missing")
    stage.tell("3. What would leave the house, exactly")
    stage.run("review", ITEM)
    stage.tell("4. A human approves: a merge, signed with the key that the demo made")
    stage.run("approve", ITEM)
    stage.tell("5. Approved is not sent: the flag is off")
    stage.run("send", expect=(1,))
    stage.tell("6. The one flag, turned on by a signed decision")
    stage.run("config", "set", "sending.enabled=true")
    stage.run("send")
    stage.tell("7. Once means once")
    stage.run("send")
    stage.tell("8. The proof")
    stage.run("receipt", ITEM)
    stage.run("audit")
    _farewell(directory, mail)


def _history(folder: Path) -> tuple[Path, str]:
    """Return a git repository with a history: the one we stand in, or one made for the demo."""
    here = _git(Path.cwd(), "rev-parse", "--show-toplevel")
    if here and _git(Path(here), "rev-parse", "--verify", "--quiet", "HEAD"):
        return Path(here), Path(here).name
    made = folder / "parser"
    made.mkdir()
    _git(made, "init", "--quiet", "--initial-branch=main")
    who = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
    who |= {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org"}
    for name, text, subject in OWN_STORY:
        (made / name).write_text(text, "utf-8")
        _git(made, "add", "--all")
        _git(made, "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", subject, **who)
    return made, "parser"


def _git(folder: Path, *arguments: str, **more: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment(**more),
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def _make(folder: Path, clone: Path, mail: Path) -> None:
    key = folder / "keys" / "you"
    public = making.make_key(key, "you@example.org")
    making.make_bus(
        clone,
        name="demo",
        approver=making.Approver("you", "you@example.org", public),
        channels={
            "preview": {"transport": "maildir", "path": str(mail), "from": ["Demo News <news@example.org>"]}
        },
        policy={"conductor": {"absent_grace": "0s"}},
    )
    making.use_key(clone, key, "You", "you@example.org")


def _farewell(directory: Path, mail: Path) -> None:
    new = sorted((mail / "new").iterdir())
    if len(new) != 1:
        raise GitbusError(f"{len(new)} messages arrived instead of one", rule="demo-failed")
    bus = directory / "bus"
    say(f"\n[green]One message[/] is in {safe(_near(new[0]))}")
    say("Look around:")
    for command in (
        f"cd {bus} && git pull",
        "git log --graph --format='%h %an  %s'",
        "git log --show-signature -1 --grep '^approve'",
        f"cat outbox/{ITEM}/approval.yaml",
        "gitbus status",
        "gitbus graph announce",
        f"gitbus log {ITEM}",
    ):
        say(f"  {safe(command)}")
    note("the first own goal in ten minutes: README.md")


def _near(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
