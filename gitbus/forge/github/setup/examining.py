"""What the doctor says of a bus on GitHub: what is enforced there, what is not, and how to mend it. Pure.

Rules: each check looks at facts and yields what it found. What only matters once something can be sent
is a warning until sending is on. Where a plan has no rulesets or environments, the check says what is
then not protected. Nothing here decides about an approval.

Example: ``[one for one in examined(case) if one.level == "problem"]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gitbus.forge.github.setup.enforced import ADMINISTRATOR, WRITER, Enforced, Shelter, Shut
from gitbus.forge.github.setup.rendering import APP_KEY, SEND, WORKFLOWS, Setting, rendered, stubs
from gitbus.forge.github.setup.wanted import environments
from gitbus.records import Bus

Level = Literal["ok", "warning", "problem"]
APPLY = "gitbus init . --github --apply"


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that was looked at."""

    level: Level
    what: str
    remedy: str = ""


@dataclass(frozen=True)
class Case:
    """What is examined: the bus, what its files should be, and what GitHub enforces.

    ``files`` are the workflows as they stand on the bus's branch, ``stubs`` the names of those that the
    default branch has (None where that could not be seen); ``owners`` what is wrong with CODEOWNERS.
    """

    bus: Bus
    setting: Setting
    facts: Enforced
    app: int | None = None
    files: Mapping[str, bytes] | None = None
    stubs: frozenset[str] | None = None
    owners: tuple[str, ...] = ()

    @property
    def grave(self) -> Level:
        """How bad is what lets a thief reach a secret or history."""
        return "problem" if self.bus.sending.enabled else "warning"


def examined(case: Case) -> Iterator[Found]:
    """Yield what was found, check by check."""
    for check in CHECKS:
        yield from check(case)


# --- files


def _files(case: Case) -> Iterator[Found]:
    if case.files is None:
        return
    wrong = [path for path, data in rendered(case.setting).items() if case.files.get(path) != data]
    roots = [
        path
        for path, data in sorted(case.files.items())
        if _is_sender(path) and case.setting.root.encode() not in data
    ]
    for path in roots:
        yield Found(
            case.grave,
            f"{path} does not name the root of this bus",
            "gitbus init . --github, and see who changed it",
        )
    if missing := [path for path in wrong if path not in case.files]:
        yield Found(
            "problem", f"missing: {', '.join(missing)}", "gitbus init . --github, then commit and push"
        )
    elif changed := [path for path in wrong if path not in roots]:
        yield Found(
            "warning",
            f"not as this gitbus writes them: {', '.join(changed)}",
            "gitbus init . --github shows the difference in your working tree",
        )
    elif not wrong:
        yield Found("ok", "the workflows are as this gitbus writes them")


def _is_sender(path: str) -> bool:
    return path in (f"{WORKFLOWS}gitbus.yml", f"{WORKFLOWS}gitbus-send.yml")


def _stubs(case: Case) -> Iterator[Found]:
    wanted = stubs(case.setting)
    if case.stubs is None or not wanted:
        return
    if missing := [name for name in wanted if name not in case.stubs]:
        yield Found(
            "problem",
            f"{case.setting.default} has no {', '.join(missing)}: nothing is scheduled or started by name",
            "SETUP.md, section 1",
        )
    else:
        yield Found("ok", f"{case.setting.default} starts the workflows of {case.setting.branch}")


def _owners(case: Case) -> Iterator[Found]:
    for wrong in case.owners:
        yield Found("warning", f"CODEOWNERS: {wrong}", "an owner needs the role Write")


# --- the branch


def _history(case: Case) -> Iterator[Found]:
    """Say whether anybody can push history back, which a fresh clone could not see."""
    facts, what = case.facts, f"that {case.setting.branch} is pushed back or deleted"
    if isinstance(facts.rulesets, Shut) and facts.rulesets.no_plan:
        if not isinstance(facts.protection, Shut):
            yield Found("ok", "branch protection stands in for rulesets, which this plan does not have")
            return
        yield Found(
            case.grave,
            f"this plan has no rulesets for a private repository: nothing forbids {what}",
            "make it public, or take a plan that has them; send from one clone that lasts, which would see it",
        )
        return
    stopped = [facts.stops(kind, ADMINISTRATOR) for kind in ("non_fast_forward", "deletion")]
    if all(one is True for one in stopped):
        yield Found("ok", f"a ruleset forbids {what}, to everybody")
    elif False in [facts.stops(kind, WRITER) for kind in ("non_fast_forward", "deletion")]:
        yield Found(case.grave, f"nothing forbids {what}", APPLY)
    elif None in stopped:
        yield Found(
            "warning",
            f"a rule forbids {what}; who may pass it, this token is not told",
            "ask with an administrator's token",
        )
    else:
        yield Found(
            "warning",
            f"administrators may pass the rule that forbids {what}",
            "take them off its bypass list",
        )


def _writers(case: Case) -> Iterator[Found]:
    facts, branch = case.facts, case.setting.branch
    may = facts.pushes(WRITER)
    if may is False:
        yield Found("ok", f"{branch} is pushed only by those whom a ruleset lets pass")
    elif may and case.app is not None:
        yield Found("warning", f"everybody with the role Write may push to {branch}", APPLY)
    elif may:
        yield Found(
            "warning",
            f"everybody with the role Write may push to {branch}, as github-actions[bot] has to",
            "a GitHub App can be told apart: gitbus init . --github --app",
        )
    if not isinstance(facts.collaborators, Shut):
        known = {one.github.login.lower() for one in case.bus.people if one.github}
        strangers = sorted(
            f"{login} ({role})"
            for login, role in facts.collaborators.items()
            if role not in ("read", "triage", "pull") and login.lower() not in known
        )
        if strangers:
            yield Found("ok", f"may push, and are nobody in bus.yaml: {', '.join(strangers)}")
    if not isinstance(facts.keys, Shut):
        writing = [str(one["title"]) for one in facts.keys if not one["read_only"]]
        if writing:
            yield Found(
                case.grave,
                f"deploy keys that may push, workflow files too: {', '.join(writing)}",
                "give workers tokens instead (SETUP.md, section 7)",
            )


def _rules(case: Case) -> Iterator[Found]:
    """Say which further rules are in the way of what a bus does."""
    rulesets = case.facts.rulesets
    kinds = set() if isinstance(rulesets, Shut) else {kind for one in rulesets for kind in one.rules}
    for kind, (what, remedy) in _IN_THE_WAY.items():
        if kind in kinds:
            yield Found("problem", f"{case.setting.branch} {what}", remedy)


_IN_THE_WAY: Mapping[str, tuple[str, str]] = {
    "required_linear_history": (
        "requires linear history: absorbing results is merging",
        "take the rule away for the bus's branch",
    ),
    "merge_queue": (
        "has a merge queue: then no person merged, and nothing is approved",
        "take the rule away for the bus's branch",
    ),
    "required_signatures": (
        "requires signed commits: what the conductor puts up is not signed",
        "take the rule away for the bus's branch",
    ),
}


def _merging(case: Case) -> Iterator[Found]:
    told = case.facts.repository
    if not told.get("allow_merge_commit", True):
        yield Found(
            "problem", "merge commits are not allowed, so nothing can be approved in the browser", APPLY
        )
    if told.get("allow_rebase_merge"):
        yield Found("warning", "rebase merges are allowed: an item merged so is not approved", APPLY)
    if told.get("allow_squash_merge"):
        yield Found("warning", "squash merges are allowed: one counts only where GitHub signed it", APPLY)
    if told.get("allow_auto_merge"):
        yield Found("warning", "auto-merge is allowed: an item merged so is not approved", APPLY)
    if told.get("merge_commit_message") == "PR_BODY":
        yield Found("warning", "a merge's message repeats the page, with what workers wrote", APPLY)
    if not told.get("has_issues", True) and any(rule.issue for rule in case.bus.notify):
        yield Found(
            "problem",
            "issues are off, and `notify` tells of things by issues",
            "turn them on in the settings",
        )


# --- secrets


def _environments(case: Case) -> Iterator[Found]:
    for one in environments(case.setting):
        shelter = case.facts.environments.get(one.name, Shut(404, "not asked"))
        if isinstance(shelter, Shut):
            yield from _no_shelter(case, one.name, shelter)
        elif shelter.branches == (case.setting.branch,) and shelter.custom:
            yield Found("ok", f"environment {one.name} is for {case.setting.branch} alone")
        else:
            names = (
                "nobody knows which" if isinstance(shelter.branches, Shut) else ", ".join(shelter.branches)
            )
            others = f"branches: {names}" if shelter.custom else "every branch"
            yield Found(case.grave, f"environment {one.name} lets in {others}", APPLY)
        if isinstance(shelter, Shelter) and not isinstance(shelter.secrets, Shut):
            lacking = [name for name in one.holds if name != "GITBUS_APP_ID" and name not in shelter.secrets]
            if lacking:
                yield Found(
                    case.grave, f"environment {one.name} lacks {', '.join(lacking)}", "SETUP.md, section 5"
                )


def _no_shelter(case: Case, name: str, shut: Shut) -> Iterator[Found]:
    if shut.absent:
        yield Found(case.grave, f"there is no environment {name}", APPLY)
    elif shut.no_plan:
        yield Found(
            case.grave,
            "this plan has no environments for a private repository: who may push a workflow file reads the secrets",
            "make it public, or take a plan that has them; or send from a machine of your own",
        )
    else:
        yield Found(
            "warning",
            f"environment {name} cannot be seen: {shut.message}",
            "ask with an administrator's token",
        )


def _secrets(case: Case) -> Iterator[Found]:
    """Say which secrets stand where every workflow of the repository reads them."""
    if isinstance(case.facts.secrets, Shut):
        return
    wanted = {name for one in environments(case.setting) for name in one.holds} | {APP_KEY}
    open_ones = sorted(wanted & set(case.facts.secrets))
    if open_ones:
        yield Found(
            case.grave,
            f"secrets of the whole repository: {', '.join(open_ones)}",
            f"put them into their environment ({SEND}, …) and delete them there",
        )


def _actions(case: Case) -> Iterator[Found]:
    told = case.facts.workflow
    if isinstance(told, Shut):
        return
    if told["default_workflow_permissions"] == "write":
        yield Found("warning", "GITHUB_TOKEN may write unless a job says otherwise", APPLY)
    if case.app is None and not case.setting.app and not told["can_approve_pull_request_reviews"]:
        yield Found("problem", "GitHub Actions may not open pull requests, so nothing is put up", APPLY)


# --- people


def _people(case: Case) -> Iterator[Found]:
    for person in case.bus.people:
        known = case.facts.people.get(person.id)
        if person.github is None:
            if "approver" in person.roles and not person.keys:
                yield Found("problem", f"{person.id} has neither a GitHub account nor a key to approve with")
            continue
        login = person.github.login
        if isinstance(known, Shut) and known.absent:
            yield Found(
                "problem",
                f"{person.id}: GitHub has no account {person.github.id}",
                "see that the number is right",
            )
        elif isinstance(known, Mapping) and known["login"].lower() != login.lower():
            now = known["login"]
            yield Found(
                "warning",
                f"{person.id}: account {person.github.id} is {now}, not {login}",
                "put it right in bus.yaml",
            )
        elif "approver" in person.roles:
            yield from _may_merge(case, person.id, login)


def _may_merge(case: Case, person: str, login: str) -> Iterator[Found]:
    people = case.facts.collaborators
    if isinstance(people, Shut):
        return
    role = {one.lower(): role for one, role in people.items()}.get(login.lower())
    owner = case.facts.repository["owner"]["login"].lower() == login.lower()
    if role in (None, "read", "triage", "pull") and not owner:
        yield Found(
            "problem", f"{person} is an approver, and may not merge here", "give him the role Write or more"
        )


Check = Callable[[Case], Iterator[Found]]
CHECKS: tuple[Check, ...] = (
    _files,
    _stubs,
    _owners,
    _history,
    _writers,
    _rules,
    _merging,
    _environments,
    _secrets,
    _actions,
    _people,
)
