"""A bus on our small GitHub, and everybody who acts on it, each in a clone and with a token of his own.

Example::

    office = make_office(github, tmp_path)
    office.item()                      # one item waits, its pull request is open
    office.github.browser("ada").merge(REPO, office.pull())
    office.conduct()
    office.send()
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gitbus import making
from gitbus.bus import Bus
from gitbus.sender import Sent
from tests.github.hub import GitHub
from tests.github.state import App, Pull
from tests.support.world import ITEM, MAIL_GOAL, Clock, Function, function_worker, ok

REPO = "acme/bus"
RIGHTS = {
    "conductor": {"contents": "write", "pull_requests": "write", "issues": "write", "metadata": "read"},
    "sender": {"contents": "write", "pull_requests": "read", "issues": "read", "metadata": "read"},
}
PEOPLE = {"ada": ["approver", "reviewer"], "bob": ["approver"], "rita": ["reviewer"]}


@dataclass
class Office:
    """One bus on one GitHub."""

    github: GitHub
    folder: Path
    clock: Clock
    apps: dict[str, App] = field(default_factory=dict)
    open_buses: list[Bus] = field(default_factory=list)

    @property
    def mail(self) -> Path:
        return self.folder / "mail"

    def messages(self) -> list[bytes]:
        new = self.mail / "new"
        return [path.read_bytes() for path in sorted(new.iterdir())] if new.is_dir() else []

    # --- who acts

    def token(self, who: str) -> str:
        """Return a token of an app (``conductor``, ``sender``) or of a person."""
        return self.github.installation_token(self.apps[who]) if who in self.apps else self.github.token(who)

    def clone(self, who: str, token: str) -> Path:
        """Return somebody's clone, made when it is first needed."""
        place = self.folder / "clones" / who
        if not place.is_dir():
            git(place.parent, "clone", "-q", self.github.remote(REPO, token), str(place))
            email = f"{who}@acme.example" if who in PEOPLE else f"{who}@bus"
            making.use_identity(place, who.title(), email)
        return place

    def bus(self, who: str, token: str | None = None, **environment: str) -> Bus:
        """Open the bus as somebody, in his clone."""
        token = token or self.token(who)
        place = self.clone(who, token)
        git(place, "remote", "set-url", "origin", self.github.remote(REPO, token))
        here = {
            **self.github.environment(REPO, token),
            "GITBUS_NO_PACE": "1",
            "PATH": "/nowhere",
            **environment,
        }
        bus = Bus.open(place, now=self.clock, environment=here)
        self.open_buses.append(bus)
        return bus

    def gitbus(self, who: str, *arguments: str, expect: int = 0) -> str:
        """Run the command line as somebody, in his clone; return what it printed, stderr after it."""
        token = self.token(who)
        place = self.clone(who, token)
        git(place, "remote", "set-url", "origin", self.github.remote(REPO, token))
        done = subprocess.run(
            [sys.executable, "-m", "gitbus", *arguments],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **self.github.environment(REPO, token), "GITBUS_NO_PACE": "1"},
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr

    # --- what happens

    def conduct(self, token: str | None = None) -> list[str]:
        """Let a conductor without memory do all there is to do; return its troubles."""
        with self.bus("conductor", token) as bus:
            conductor = bus.conductor()
            for _ in range(200):
                if not conductor.tick():
                    return conductor.forge.troubles
        raise AssertionError("the conductor never comes to rest")

    def item(
        self,
        goal: bytes = MAIL_GOAL,
        confidence: float = 0.9,
        text: str = "Hello,\nit is out.\n",
        token: str | None = None,
    ) -> None:
        """Bring the goal's items to where they wait, with their pull requests open."""
        with self.bus("ada") as ada:
            ada.add_goal(goal)
        self.work(confidence, text, token)

    def work(
        self, confidence: float = 0.9, text: str = "Hello,\nit is out.\n", token: str | None = None
    ) -> None:
        """Let a conductor and a worker do all there is to do."""
        with self.bus("worker", self.token("bob")) as bus, self.bus("conductor", token) as hub:
            conductor = hub.conductor()
            worker = function_worker(bus, "laptop", hands(confidence, text), capacity=50)
            for _ in range(200):
                acted = conductor.tick()
                acted = worker.step() or acted
                if not acted and not worker.busy():
                    worker.close()
                    return
                worker.rest(0.05)
        raise AssertionError("the bus never comes to rest")

    def sending(self, on: bool = True) -> None:
        """Turn sending on or off by a pull request that an approver merges."""
        with self.bus("ada") as ada:
            ada.propose_config("sending.enabled", on)
        self.conduct()
        self.github.browser("ada").merge(REPO, self.number("gitbus/decide/bus"))

    def send(self, **environment: str) -> list[Sent]:
        """Let a sender without memory do one round."""
        with self.bus("sender", **environment) as bus, bus.sender({}) as sender:
            return sender.round()

    # --- looking

    def number(self, head: str = f"gitbus/approve/{ITEM}") -> int:
        """Return the newest pull request of a branch."""
        found = [one.number for one in self.pulls() if one.head_ref == head]
        assert found, f"no pull request of {head}"
        return max(found)

    def pulls(self) -> list[Pull]:
        return [one for one in self.github.world.repos[REPO].issues.values() if isinstance(one, Pull)]

    def state(self, item: str = ITEM) -> str:
        with self.bus("ada") as bus:
            return bus.board().items[item].state

    def findings(self, *, online: bool = False) -> list[str]:
        with self.bus("ada") as bus:
            return [f"{one.rule}: {one.message}" for one in bus.audit(online=online).findings]

    def refs(self) -> Mapping[str, str]:
        return self.github.world.repos[REPO].git.refs()


def hands(confidence: float = 0.9, text: str = "Hello,\nit is out.\n") -> dict[str, Function]:
    """Return what the worker of these tests can do."""
    return {
        "write": lambda task: {"title": "Release 1.0"},
        "compose": lambda task: ok(task, "laptop", confidence=confidence, outputs={"text": text}),
        "gather": lambda task: {"people": [{"id": one} for one in "abc"]},
        "greet": lambda task: ok(
            task, "laptop", confidence=confidence, outputs={"text": f"Hello {task.inputs['name']}\n"}
        ),
    }


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_office(github: GitHub, folder: Path, **policy: Any) -> Office:
    """Make a bus on ``acme/bus`` with Ada and Bob as approvers and Rita as reviewer, and a Maildir."""
    clock = Clock()
    github.world.clock = clock
    office = Office(github, folder, clock)
    for login in ("acme", *PEOPLE, "mallory"):
        github.user(login, email=f"{login}@acme.example")
    roles = {"ada": "admin", "bob": "write", "rita": "write"}
    github.repo(REPO, private=False, roles=roles)
    for name, rights in RIGHTS.items():
        office.apps[name] = github.app(f"gitbus-{name}", dict(rights), {REPO})
    people = [
        {
            "id": name,
            "email": f"{name}@acme.example",
            "roles": list(some),
            "github": {"login": name, "id": github.world.users[name].id},
        }
        for name, some in PEOPLE.items()
    ]
    ada = folder / "clones" / "ada"
    ada.parent.mkdir(parents=True)
    making.make_bus(
        ada,
        name="acme",
        approver=making.Approver("ada", "ada@acme.example", github=("ada", people[0]["github"]["id"])),
        hub=github.remote(REPO, github.token("ada")),
        channels={
            "news": {
                "transport": "maildir",
                "path": str(office.mail),
                "from": ["Acme News <news@acme.example>"],
            }
        },
        policy={
            "people": people,
            "conductor": {"absent_grace": "0s"},
            "approval": {"proof": "github"},
            **policy,
        },
    )
    making.use_identity(ada, "Ada", "ada@acme.example")
    return office
