"""Calls about issues, comments, labels and events; a pull request is an issue here.

Example: ``POST /repos/acme/bus/issues/7/comments`` with ``{"body": "sent"}``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.github.api import (
    Answer,
    Call,
    Fault,
    fits,
    invalid,
    not_found,
    reads,
    route,
    unprocessable,
    writes,
)
from tests.github.api_repos import REPO
from tests.github.moving import close, happen, ping, record, reopen
from tests.github.state import Comment, Issue, Label, Pull

ISSUES = f"{REPO}/issues"
ISSUE = f"{ISSUES}/{{issue_number}}"
READ = (reads("issues"), reads("pull_requests"))
WRITE = (writes("issues"), writes("pull_requests"))


@route("GET", ISSUES, reads("issues"))
def list_issues(call: Call) -> Answer:
    """Issues and pull requests, newest first unless asked otherwise."""
    query = call.query
    state = query.get("state", "open")
    found = [one for one in call.repo.issues.values() if state in ("all", one.state)]
    wanted = {one.lower() for one in query.get("labels", "").split(",") if one}
    found = [one for one in found if wanted <= {label.lower() for label in one.labels}]
    if query.get("creator"):
        found = [one for one in found if one.by == query["creator"]]
    if query.get("since"):
        since = datetime.fromisoformat(query["since"])
        found = [one for one in found if one.updated >= since]
    updated = query.get("sort", "created") == "updated"
    down = query.get("direction", "desc") == "desc"
    found.sort(key=lambda one: (one.updated if updated else one.created, one.number), reverse=down)
    return call.many(found, lambda one: call.shapes.issue(call.repo, one))


@route("POST", ISSUES, writes("issues"))
def open_issue(call: Call) -> Answer:
    """Open an issue."""
    fits(call.body, "Issue")
    if not call.given("title"):
        invalid("Issue", "missing_field", "title")
    now = call.world.now()
    number = max(call.repo.issues, default=0) + 1
    issue = Issue(
        call.world.id(), number, str(call.body["title"]), call.given("body"), call.user.login, now, now
    )
    issue.app = call.token.app if call.token else None
    call.repo.issues[number] = issue
    ping(call.world, call.place(issue), issue.body)
    if call.given("labels") and call.may_triage:
        _add_labels(call, issue, [_label_name(one) for one in call.body["labels"]])
    happen(call.world, "issues", call.repo, call.actor, action="opened", number=number)
    location = {"Location": f"{call.shapes.api}{call.path}/{number}"}
    return Answer(call.shapes.issue(call.repo, issue), 201, location)


@route("GET", ISSUE, *READ)
def get_issue(call: Call) -> Answer:
    """An issue."""
    return Answer(call.shapes.issue(call.repo, call.issue()))


@route("PATCH", ISSUE, *WRITE)
def change_issue(call: Call) -> Answer:
    """Change title, body, labels, or open and close."""
    issue = call.issue()
    if issue.by != call.user.login and not call.may_triage:
        raise Fault(403, "Must have admin rights to Repository.")
    fits(call.body, "Issue")
    for name in ("title", "body"):
        if name in call.body:
            setattr(issue, name, call.body[name])
            issue.updated = call.world.now()
    if "labels" in call.body:
        _set_labels(call, issue, [_label_name(one) for one in call.body["labels"]])
    if call.given("state", issue.state) != issue.state:
        _open_or_close(call, issue)
    return Answer(call.shapes.issue(call.repo, issue))


def _open_or_close(call: Call, issue: Issue) -> None:
    closes = call.body["state"] == "closed"
    if isinstance(issue, Pull):
        if issue.merged is not None:
            invalid("Issue", "custom", "state", "state cannot be changed. It was merged.")
        (close if closes else reopen)(call.world, call.repo, issue, call.actor)
        return
    issue.state = call.body["state"]
    issue.reason = call.given("state_reason") or ("completed" if closes else "reopened")
    issue.closed = call.world.now() if closes else None
    issue.closed_by = call.user.login if closes else None
    reason = {"state_reason": issue.reason if issue.reason == "not_planned" else None}
    record(call.world, issue, "closed" if closes else "reopened", call.user.login, **reason)
    action = "closed" if closes else "reopened"
    happen(call.world, "issues", call.repo, call.actor, action=action, number=issue.number)


# --- comments


@route("GET", f"{ISSUE}/comments", *READ)
def list_comments(call: Call) -> Answer:
    """The comments, oldest first."""
    issue = call.issue()
    return call.many(issue.comments, lambda one: call.shapes.comment(call.repo, issue, one))


@route("POST", f"{ISSUE}/comments", *WRITE)
def add_comment(call: Call) -> Answer:
    """Comment."""
    issue, body = call.issue(), call.given("body")
    if not body:
        invalid("IssueComment", "missing_field", "body")
    fits(call.body, "IssueComment")
    app = call.token.app if call.token else None
    comment = Comment(call.world.id(), call.user.login, body, call.world.now(), app)
    issue.comments.append(comment)
    ping(call.world, call.place(issue), body)
    issue.updated = comment.created
    happen(call.world, "issue_comment", call.repo, call.actor, action="created", number=issue.number)
    return Answer(call.shapes.comment(call.repo, issue, comment), 201)


def _comment(call: Call) -> tuple[Issue, Comment]:
    number = call.number("comment_id")
    for issue in call.repo.issues.values():
        for comment in issue.comments:
            if comment.id == number:
                return issue, comment
    return not_found()


@route("GET", f"{ISSUES}/comments/{{comment_id}}", *READ)
def get_comment(call: Call) -> Answer:
    """One comment."""
    return Answer(call.shapes.comment(call.repo, *_comment(call)))


@route("PATCH", f"{ISSUES}/comments/{{comment_id}}", *WRITE)
def change_comment(call: Call) -> Answer:
    """Change one's comment."""
    issue, comment = _comment(call)
    if comment.by != call.user.login and not call.may_triage:
        raise Fault(403, "Must have admin rights to Repository.")
    comment.body = call.given("body", comment.body)
    return Answer(call.shapes.comment(call.repo, issue, comment))


# --- labels


def _label_name(one: Any) -> str:
    return str(one["name"]) if isinstance(one, dict) else str(one)


def _known(call: Call, name: str) -> Label:
    """Return a label by its name, whose case does not matter; it is made where it was not."""
    found = next((one for one in call.repo.labels.values() if one.name.lower() == name.lower()), None)
    if found is None:
        found = call.repo.labels[name] = Label(call.world.id(), name, "ededed")
    return found


def _add_labels(call: Call, issue: Issue, names: list[str]) -> None:
    for name in names:
        label = _known(call, name)
        if label.name not in issue.labels:
            issue.labels.append(label.name)
            about = {"name": label.name, "color": label.color}
            record(call.world, issue, "labeled", call.user.login, label=about)


def _drop_label(call: Call, issue: Issue, name: str) -> None:
    label = call.repo.labels[name]
    issue.labels.remove(name)
    record(call.world, issue, "unlabeled", call.user.login, label={"name": name, "color": label.color})


def _set_labels(call: Call, issue: Issue, names: list[str]) -> None:
    wanted = [_known(call, name).name for name in names]
    for name in [one for one in issue.labels if one not in wanted]:
        _drop_label(call, issue, name)
    _add_labels(call, issue, wanted)


def _given_labels(call: Call) -> list[str]:
    given = call.body.get("labels", []) if isinstance(call.body, dict) else call.body
    return [_label_name(one) for one in given or []]


@route("GET", f"{ISSUE}/labels", *READ)
def labels_of_issue(call: Call) -> Answer:
    """The labels of an issue."""
    return call.many(call.shapes.labels(call.repo, call.issue()), lambda one: one)


@route("POST", f"{ISSUE}/labels", *WRITE, role="triage")
def add_labels(call: Call) -> Answer:
    """Add labels."""
    issue = call.issue()
    _add_labels(call, issue, _given_labels(call))
    return Answer(call.shapes.labels(call.repo, issue))


@route("PUT", f"{ISSUE}/labels", *WRITE, role="triage")
def set_labels(call: Call) -> Answer:
    """Have exactly these labels."""
    issue = call.issue()
    _set_labels(call, issue, _given_labels(call))
    return Answer(call.shapes.labels(call.repo, issue))


@route("DELETE", f"{ISSUE}/labels/{{name}}", *WRITE, role="triage")
def drop_label(call: Call) -> Answer:
    """Remove a label."""
    issue = call.issue()
    name = next((one for one in issue.labels if one.lower() == call.parameters["name"].lower()), None)
    if name is None:
        raise Fault(404, "Label does not exist")
    _drop_label(call, issue, name)
    return Answer(call.shapes.labels(call.repo, issue))


@route("GET", f"{REPO}/labels", *READ)
def list_labels(call: Call) -> Answer:
    """The labels of a repository."""
    return call.many(list(call.repo.labels.values()), lambda one: call.shapes.label(call.repo, one))


@route("POST", f"{REPO}/labels", *WRITE, role="write")
def make_label(call: Call) -> Answer:
    """Make a label."""
    name = call.given("name") or invalid("Label", "missing_field", "name")
    if any(one.lower() == name.lower() for one in call.repo.labels):
        invalid("Label", "already_exists", "name")
    if len(call.given("description") or "") > 100:
        invalid("Label", "custom", "description", "description is too long (maximum is 100 characters)")
    label = Label(call.world.id(), name, call.given("color") or "ededed", call.given("description"))
    call.repo.labels[name] = label
    return Answer(call.shapes.label(call.repo, label), 201)


def _named(call: Call) -> Label:
    name = call.parameters["name"].lower()
    return next((one for one in call.repo.labels.values() if one.name.lower() == name), None) or not_found()


@route("GET", f"{REPO}/labels/{{name}}", *READ)
def get_label(call: Call) -> Answer:
    """A label."""
    return Answer(call.shapes.label(call.repo, _named(call)))


@route("PATCH", f"{REPO}/labels/{{name}}", *WRITE, role="write")
def change_label(call: Call) -> Answer:
    """Change a label; issues keep it under its new name."""
    label = _named(call)
    old, new = label.name, call.given("new_name") or label.name
    if not new:
        unprocessable("name can't be blank")
    label.name, label.color = new, call.given("color") or label.color
    label.description = call.given("description", label.description)
    call.repo.labels[new] = call.repo.labels.pop(old)
    for issue in call.repo.issues.values():
        issue.labels = [new if one == old else one for one in issue.labels]
    return Answer(call.shapes.label(call.repo, label))


# --- what happened


@route("GET", f"{ISSUE}/events", *READ)
def list_events(call: Call) -> Answer:
    """The events of an issue, oldest first."""
    issue = call.issue()
    return call.many(issue.events, lambda one: call.shapes.event(call.repo, one))


@route("GET", f"{ISSUE}/timeline", *READ)
def list_timeline(call: Call) -> Answer:
    """All that happened to an issue, oldest first."""
    found = call.shapes.timeline(call.repo, call.issue())
    return call.many(found, lambda one: one)
