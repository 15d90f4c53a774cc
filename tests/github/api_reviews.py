"""Calls about reviews: ask for one, give one, take one away.

Example: ``POST /repos/acme/bus/pulls/7/reviews`` with ``{"event": "APPROVE"}``.
"""

from __future__ import annotations

from tests.github.api import Answer, Call, Fault, fits, not_found, reads, route, unprocessable, writes
from tests.github.api_pulls import PULL
from tests.github.moving import dismissed, happen, record
from tests.github.rights import role_of
from tests.github.rules import actor_of
from tests.github.state import Pull, Review

_STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
_OWN = {
    "APPROVE": "Can not approve your own pull request",
    "REQUEST_CHANGES": "Can not request changes on your own pull request",
}


@route("POST", f"{PULL}/requested_reviewers", writes("pull_requests"))
def request(call: Call) -> Answer:
    """Ask people for a review."""
    pull = call.pull()
    asked = [str(one) for one in call.given("reviewers", [])]
    if pull.by in asked:
        unprocessable(message="Review cannot be requested from pull request author.")
    if any(role_of(call.repo, login) is None or login not in call.world.users for login in asked):
        unprocessable(
            message="Reviews may only be requested from collaborators. One or more of the users or teams "
            f"you specified is not a collaborator of the {call.repo.full_name} repository."
        )
    for login in asked:
        if login not in pull.reviewers:
            pull.reviewers.append(login)
            people = {"review_requester": call.user.login, "requested_reviewer": login}
            record(call.world, pull, "review_requested", call.user.login, **people)
    return Answer(call.shapes.pull_in_list(call.repo, pull), 201)


@route("GET", f"{PULL}/requested_reviewers", reads("pull_requests"))
def requested(call: Call) -> Answer:
    """Who was asked and has not answered."""
    return Answer({"users": [call.shapes.user(one) for one in call.pull().reviewers], "teams": []})


@route("DELETE", f"{PULL}/requested_reviewers", writes("pull_requests"))
def unrequest(call: Call) -> Answer:
    """Ask people no longer."""
    pull = call.pull()
    for login in call.given("reviewers", []):
        if login in pull.reviewers:
            pull.reviewers.remove(login)
            people = {"review_requester": call.user.login, "requested_reviewer": login}
            record(call.world, pull, "review_request_removed", call.user.login, **people)
    return Answer(call.shapes.pull_in_list(call.repo, pull))


@route("GET", f"{PULL}/reviews", reads("pull_requests"))
def list_reviews(call: Call) -> Answer:
    """The reviews, oldest first."""
    pull = call.pull()
    return call.many(pull.reviews, lambda one: call.shapes.review(call.repo, pull, one))


@route("POST", f"{PULL}/reviews", writes("pull_requests"))
def give_review(call: Call) -> Answer:
    """Approve, request changes, or comment; never on one's own pull request."""
    pull = call.pull()
    fits(call.body, "PullRequestReview")
    event, body = call.given("event", "COMMENT"), call.given("body") or ""
    if event not in _STATES:
        unprocessable("event is not included in the list", message="Unprocessable Entity")
    if pull.by == call.user.login and event in _OWN:
        unprocessable(_OWN[event])
    if event != "APPROVE" and not body:
        unprocessable("Body cannot be blank")
    if call.actor.kind == "actions" and event == "APPROVE" and not call.repo.workflow_approves:
        raise Fault(403, "GitHub Actions is not permitted to create or approve pull requests.")
    commit = call.given("commit_id") or pull.head
    if commit not in call.repo.git.range(pull.base, pull.head) and commit != pull.head:
        unprocessable("Commit is not part of the pull request")
    review = Review(call.world.id(), call.user.login, _STATES[event], body, commit, call.world.now())
    keep_review(call, pull, review)
    return Answer(call.shapes.review(call.repo, pull, review))


def keep_review(call: Call, pull: Pull, review: Review) -> None:
    """Add a review, and say that it was submitted."""
    pull.reviews.append(review)
    pull.updated = review.at
    if review.by in pull.reviewers:
        pull.reviewers.remove(review.by)
    ref = f"refs/pull/{pull.number}/merge"
    more = {"ref": ref, "action": "submitted", "number": pull.number, "sha": review.commit}
    happen(call.world, "pull_request_review", call.repo, call.actor, **more)


@route("GET", f"{PULL}/reviews/{{review_id}}", reads("pull_requests"))
def get_review(call: Call) -> Answer:
    """One review."""
    pull = call.pull()
    return Answer(call.shapes.review(call.repo, pull, _review(call, pull)))


def _review(call: Call, pull: Pull) -> Review:
    number = call.number("review_id")
    found = next((one for one in pull.reviews if one.id == number), None)
    return found if found is not None else not_found()


@route("PUT", f"{PULL}/reviews/{{review_id}}/dismissals", writes("pull_requests"), role="write")
def dismiss(call: Call) -> Answer:
    """Take a review away; who did, and what it was, stays in the timeline."""
    pull = call.pull()
    review = _review(call, pull)
    if not call.given("message"):
        unprocessable("message can't be blank")
    if review.state not in ("APPROVED", "CHANGES_REQUESTED"):
        unprocessable(f"Can not dismiss a {review.state.lower()} pull request review")
    assert call.token is not None
    dismissed(call.world, pull, review.id, actor_of(call.token), call.given("message"))
    return Answer(call.shapes.review(call.repo, pull, review))
