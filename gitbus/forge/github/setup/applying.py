"""Making a repository on GitHub what a bus needs: rulesets, environments, labels, settings; step by step.

Rules: every step looks first and changes only what differs, so that it can be done again at any time.
What GitHub refuses (a right is missing, a plan has no rulesets) is told and holds nothing else up.
Nothing that people made is taken away.

Example: ``[one for one in apply(client, setting) if not one.done]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gitbus import paths
from gitbus.errors import GitbusError
from gitbus.forge.github.client import Client, ForgeRefused
from gitbus.forge.github.setup.rendering import APP_ID, CONDUCT, Setting
from gitbus.forge.github.setup.wanted import MERGING, actions, environments, labels, rulesets


@dataclass(frozen=True, slots=True)
class Step:
    """What became of one thing that was to be made."""

    word: Literal["made", "changed", "is there", "left", "refused"]
    what: str
    why: str = ""

    @property
    def done(self) -> bool:
        """Whether it is as it shall be."""
        return self.word not in ("left", "refused")


def apply(client: Client, setting: Setting) -> Iterator[Step]:
    """Make what is missing, and yield what became of each thing.

    Args:
        client: calls of a token that administers the repository.
        setting: the bus.

    Raises:
        ForgeRefused: there is no such repository, or the token may not read it.
        Unreachable: GitHub did not answer.
    """
    made = _Applying(client, setting, client.get(client.place.path))
    for what, steps in (
        ("labels", made.labels),
        ("environments", made.environments),
        ("rulesets", made.rulesets),
        ("what GITHUB_TOKEN may do", made.actions),
        ("how pull requests are merged", made.merging),
    ):
        yield from _bearing(what, steps)


def _bearing(what: str, steps: Callable[[], Iterator[Step]]) -> Iterator[Step]:
    """Yield steps until GitHub refuses one."""
    try:
        yield from steps()
    except ForgeRefused as error:
        why = f"{error.message}" + (f" ({error.remedy})" if error.remedy else "")
        yield Step("refused", what, why)


@dataclass
class _Applying:
    """One repository on its way."""

    client: Client
    setting: Setting
    told: Mapping[str, Any]  # the repository, as GitHub tells of it

    @property
    def repo(self) -> str:
        return self.client.place.path

    # --- labels

    def labels(self) -> Iterator[Step]:
        """Make the labels that are not there; how people coloured theirs is their own."""
        known = {one["name"].lower() for one in self.client.pages(f"{self.repo}/labels")}
        for label in labels():
            if label.name.lower() not in known:
                body = {"name": label.name, "color": label.color, "description": label.description}
                self.client.send("POST", f"{self.repo}/labels", body)
                yield Step("made", f"label {label.name}")

    # --- environments

    def environments(self) -> Iterator[Step]:
        """Make the environments, each for the bus's branch alone."""
        for one in environments(self.setting):
            yield from self._environment(one.name)

    def _environment(self, name: str) -> Iterator[Step]:
        path = f"{self.repo}/environments/{name}"
        known = self._known(path)
        policy = (known or {}).get("deployment_branch_policy") or {}
        if not policy.get("custom_branch_policies"):
            body = {**_kept(known or {}), "deployment_branch_policy": _CUSTOM}
            self.client.send("PUT", path, body)
        policies = self.client.pages(f"{path}/deployment-branch-policies", key="branch_policies")
        names = {one["name"] for one in policies}
        if self.setting.branch not in names:
            body = {"name": self.setting.branch, "type": "branch"}
            self.client.send("POST", f"{path}/deployment-branch-policies", body)
        others = sorted(names - {self.setting.branch})
        if others:
            yield Step("left", f"environment {name}", f"take its other branches away: {', '.join(others)}")
        elif known is None:
            yield Step("made", f"environment {name}", f"for {self.setting.branch} alone")
        elif self.setting.branch not in names:
            yield Step("changed", f"environment {name}", f"for {self.setting.branch} alone")
        else:
            yield Step("is there", f"environment {name}")

    def _known(self, path: str) -> Any:
        try:
            return self.client.get(path)
        except ForgeRefused as error:
            if error.rule == "not-found":
                return None
            raise

    # --- rulesets

    def rulesets(self) -> Iterator[Step]:
        """Make the rulesets, and change those of our names that differ."""
        app = app_number(self.client) if self.setting.app else None
        if self.setting.app and app is None:
            yield Step("left", "who may write", f"set the variable {APP_ID}, then say this again")
        organisation = self.told["owner"]["type"] == "Organization"
        listed = self.client.pages(f"{self.repo}/rulesets", includes_parents="false")
        known = {one["name"]: one["id"] for one in listed}
        for wanted in rulesets(self.setting, app=app, organisation=organisation):
            yield self._ruleset(wanted, known.get(wanted["name"]))

    def _ruleset(self, wanted: Mapping[str, Any], number: int | None) -> Step:
        what = f"ruleset {wanted['name']}"
        if number is None:
            self.client.send("POST", f"{self.repo}/rulesets", wanted)
            return Step("made", what)
        if _holds(self.client.get(f"{self.repo}/rulesets/{number}"), wanted):
            return Step("is there", what)
        self.client.send("PUT", f"{self.repo}/rulesets/{number}", wanted)
        return Step("changed", what)

    # --- settings

    def actions(self) -> Iterator[Step]:
        """Give GITHUB_TOKEN little by itself, and the right to open pull requests where nobody else does."""
        path, wanted = f"{self.repo}/actions/permissions/workflow", actions(self.setting)
        if _holds(self.client.get(path), wanted):
            yield Step("is there", "what GITHUB_TOKEN may do")
        else:
            self.client.send("PUT", path, wanted)
            yield Step("changed", "what GITHUB_TOKEN may do")

    def merging(self) -> Iterator[Step]:
        """Leave merge commits alone, where the repository holds nothing but the bus."""
        what = "how pull requests are merged"
        if not self._only_the_bus():
            yield Step("left", what, "the repository holds more than the bus; allow merge commits at least")
        elif _holds(self.told, MERGING):
            yield Step("is there", what)
        else:
            self.client.send("PATCH", self.repo, dict(MERGING))
            yield Step("changed", what, "merge commits only; head branches are deleted")

    def _only_the_bus(self) -> bool:
        branches = self.client.pages(f"{self.repo}/branches")
        own = paths.WORKERS.removeprefix(paths.HEADS).split("/")[0] + "/"
        return self.told["default_branch"] == self.setting.branch and all(
            one["name"] == self.setting.branch or one["name"].startswith(own) for one in branches
        )


def app_number(client: Client) -> int | None:
    """Return the App's number, from the variable of the conductor's environment or the repository's."""
    repo = client.place.path
    for where in (f"{repo}/environments/{CONDUCT}", f"{repo}/actions"):
        try:
            value = str(client.get(f"{where}/variables/{APP_ID}")["value"]).strip()
        except GitbusError:
            continue
        if value.isdigit():
            return int(value)
    return None


_CUSTOM = {"protected_branches": False, "custom_branch_policies": True}


def _kept(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an environment is protected by already, which a change would take away else."""
    kept: dict[str, Any] = {}
    for rule in known.get("protection_rules", ()):
        if rule["type"] == "wait_timer":
            kept["wait_timer"] = rule["wait_timer"]
        if rule["type"] == "required_reviewers":
            people = [{"type": one["type"], "id": one["reviewer"]["id"]} for one in rule["reviewers"]]
            kept |= {"reviewers": people, "prevent_self_review": rule.get("prevent_self_review", False)}
    return kept


def _holds(told: Any, wanted: Any) -> bool:
    """Say whether what GitHub tells holds at least what is wanted; the order of lists is no matter."""
    if isinstance(wanted, Mapping):
        return isinstance(told, Mapping) and all(_holds(told.get(key), one) for key, one in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(told, list)
            and len(told) == len(wanted)
            and all(any(_holds(there, one) for there in told) for one in wanted)
        )
    return bool(told == wanted)
