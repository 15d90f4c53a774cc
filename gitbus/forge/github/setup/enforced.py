"""What GitHub enforces for a bus, as its API tells this token: facts, asked once.

Rules: nothing is taken from what the setup meant to make; all is read back. What GitHub does not tell
(the plan has no such thing, the token may not see it, it is not there) is a :class:`Shut` with its
status, and is told apart from what is there and empty.

Example: ``enforced(client, "main", ("gitbus-send",), people).stops("non_fast_forward", WRITER)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from gitbus.forge.github.client import Client, ForgeRefused
from gitbus.forge.github.setup.wanted import ADMIN, WRITE
from gitbus.records import Person


@dataclass(frozen=True, slots=True)
class Shut:
    """Something that GitHub does not tell."""

    status: int
    message: str

    @property
    def no_plan(self) -> bool:
        """Whether the plan of this repository has no such thing."""
        return self.status == HTTPStatus.FORBIDDEN and "upgrade" in self.message.lower()

    @property
    def absent(self) -> bool:
        """Whether it is not there (or, to this token, as good as not)."""
        return self.status == HTTPStatus.NOT_FOUND


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who pushes: by a role, as an App, with a deploy key."""

    kind: str  # RepositoryRole | Integration | DeployKey
    number: int | None = None


WRITER = Actor("RepositoryRole", WRITE)
ADMINISTRATOR = Actor("RepositoryRole", ADMIN)
KEY = Actor("DeployKey")


@dataclass(frozen=True)
class Ruleset:
    """An active ruleset that holds for a branch; who may pass it is None where this token is not told."""

    name: str
    rules: Mapping[str, Mapping[str, Any]]  # type → parameters
    bypass: tuple[Mapping[str, Any], ...] | None

    def binds(self, actor: Actor) -> bool | None:
        """Say whether somebody has to keep to it; None where that is not told."""
        if self.bypass is None:
            return None
        return not any(_is(one, actor) for one in self.bypass if one.get("bypass_mode") == "always")


@dataclass(frozen=True)
class Shelter:
    """An environment: whether a branch policy guards it, the branches let in, the names of its secrets."""

    custom: bool
    branches: tuple[str, ...] | Shut
    secrets: tuple[str, ...] | Shut
    reviewers: bool = False


@dataclass(frozen=True)
class Enforced:
    """All that was asked of one repository."""

    repository: Mapping[str, Any]
    branch: str
    rulesets: tuple[Ruleset, ...] | Shut  # that hold for the bus's branch
    put_up: tuple[Ruleset, ...] | Shut  # that hold for gitbus/approve/*
    protection: Mapping[str, Any] | Shut
    environments: Mapping[str, Shelter | Shut]
    secrets: tuple[str, ...] | Shut  # of the repository itself
    collaborators: Mapping[str, str] | Shut  # login → role
    keys: tuple[Mapping[str, Any], ...] | Shut
    workflow: Mapping[str, Any] | Shut
    people: Mapping[str, Mapping[str, Any] | Shut] = field(default_factory=dict)  # person → account

    def stops(self, kind: str, actor: Actor, *, put_up: bool = False) -> bool | None:
        """Say whether a rule of a kind stops somebody; None where GitHub does not tell."""
        found = self.put_up if put_up else self.rulesets
        if isinstance(found, Shut):
            return False if found.no_plan else None
        answers = [one.binds(actor) for one in found if kind in one.rules]
        return True if True in answers else None if None in answers else False

    def pushes(self, actor: Actor) -> bool | None:
        """Say whether somebody may push the bus's branch by himself."""
        stopped = [self.stops(kind, actor) for kind in ("pull_request", "update")]
        return False if True in stopped else None if None in stopped else True


def _is(one: Mapping[str, Any], actor: Actor) -> bool:
    kind, number = one.get("actor_type"), one.get("actor_id")
    if kind == "OrganizationAdmin":
        return actor == ADMINISTRATOR
    return kind == actor.kind and (kind == "DeployKey" or number == actor.number)


def enforced(client: Client, branch: str, environments: Iterable[str], people: Iterable[Person]) -> Enforced:
    """Ask GitHub what it enforces for a bus.

    Args:
        client: calls of a token; the more it may read, the more is told.
        branch: the bus's branch.
        environments: the names of the environments that the workflows use.
        people: those of the bus, for their accounts.

    Raises:
        ForgeRefused: there is no such repository.
        Unreachable: GitHub did not answer.
    """
    ask = _Ask(client)
    return Enforced(
        repository=client.get(client.place.path),
        branch=branch,
        rulesets=ask.rulesets(branch),
        put_up=ask.rulesets("gitbus/approve/x.y.z"),
        protection=ask(lambda: client.get(f"{ask.repo}/branches/{branch}/protection")),
        environments={name: ask.shelter(name) for name in environments},
        secrets=ask.names(f"{ask.repo}/actions/secrets", "secrets"),
        collaborators=ask.collaborators(),
        keys=ask(lambda: tuple(client.pages(f"{ask.repo}/keys"))),
        workflow=ask(lambda: client.get(f"{ask.repo}/actions/permissions/workflow")),
        people={one.id: ask.account(one) for one in people if one.github},
    )


class _Ask:
    """Asks, and turns what GitHub does not tell into values."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.repo = client.place.path
        self._known: dict[int, Any] = {}

    def __call__(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except ForgeRefused as error:
            return Shut(error.status, error.message)

    def rulesets(self, branch: str) -> tuple[Ruleset, ...] | Shut:
        """Return the rulesets that hold for a branch, with those of the organisation."""
        rules = self(lambda: self.client.pages(f"{self.repo}/rules/branches/{branch}"))
        if isinstance(rules, Shut):
            return rules
        found: dict[int, dict[str, Mapping[str, Any]]] = {}
        for rule in rules:
            found.setdefault(rule["ruleset_id"], {})[rule["type"]] = rule.get("parameters") or {}
        return tuple(self._ruleset(number, kinds) for number, kinds in sorted(found.items()))

    def _ruleset(self, number: int, kinds: Mapping[str, Mapping[str, Any]]) -> Ruleset:
        if number not in self._known:
            self._known[number] = self(lambda: self.client.get(f"{self.repo}/rulesets/{number}"))
        told = self._known[number]
        if isinstance(told, Shut):
            return Ruleset(f"ruleset {number}", kinds, None)
        bypass = told.get("bypass_actors")
        return Ruleset(told["name"], kinds, None if bypass is None else tuple(bypass))

    def shelter(self, name: str) -> Shelter | Shut:
        """Return an environment."""
        path = f"{self.repo}/environments/{name}"
        told = self(lambda: self.client.get(path))
        if isinstance(told, Shut):
            return told
        policy = told.get("deployment_branch_policy") or {}
        return Shelter(
            custom=bool(policy.get("custom_branch_policies")),
            branches=self.names(f"{path}/deployment-branch-policies", "branch_policies"),
            secrets=self.names(f"{path}/secrets", "secrets"),
            reviewers=any(one["type"] == "required_reviewers" for one in told.get("protection_rules", ())),
        )

    def names(self, path: str, key: str) -> tuple[str, ...] | Shut:
        """Return the names in a list."""
        found = self(lambda: self.client.pages(path, key=key))
        return found if isinstance(found, Shut) else tuple(one["name"] for one in found)

    def collaborators(self) -> Mapping[str, str] | Shut:
        """Return who may do what, by login."""
        found = self(lambda: self.client.pages(f"{self.repo}/collaborators"))
        if isinstance(found, Shut):
            return found
        return {one["login"]: one.get("role_name") or _role(one.get("permissions") or {}) for one in found}

    def account(self, person: Person) -> Mapping[str, Any] | Shut:
        """Return a person's account by its number."""
        number = person.github.id if person.github else 0
        found: Mapping[str, Any] | Shut = self(lambda: self.client.get(f"/user/{number}"))
        return found


def _role(permissions: Mapping[str, bool]) -> str:
    return next((role for role in ("admin", "maintain", "push", "triage") if permissions.get(role)), "read")
