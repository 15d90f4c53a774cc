"""How issues, pull requests, comments, reviews and events look in the API's answers.

Example: ``IssueShapes(world).pull(repo, pull)["merged_by"]``.
"""

from __future__ import annotations

from typing import Any

from tests.github.bare import Made
from tests.github.diffs import numbers
from tests.github.merging import trial_merge
from tests.github.shapes import Json, Shapes, iso, maybe, node
from tests.github.state import App, Comment, Event, Issue, Label, Pull, Repo, Review

_REACTIONS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")


class IssueShapes(Shapes):
    """Answers about issues and pull requests."""

    def label(self, repo: Repo, label: Label) -> Json:
        """A label."""
        return {
            "id": label.id,
            "node_id": node("LA_", label.id),
            "url": f"{self.api}/repos/{repo.full_name}/labels/{label.name}",
            "name": label.name,
            "color": label.color,
            "default": False,
            "description": label.description,
        }

    def labels(self, repo: Repo, issue: Issue) -> list[Json]:
        """The labels of an issue."""
        return [self.label(repo, repo.labels[name]) for name in issue.labels if name in repo.labels]

    def association(self, repo: Repo, login: str) -> str:
        """What somebody is to a repository."""
        if login == repo.owner:
            return "OWNER"
        return "COLLABORATOR" if login in repo.roles else "NONE"

    def app(self, app: App | None) -> Json | None:
        """An app, where one acted for somebody."""
        if app is None:
            return None
        return {
            "id": app.id,
            "client_id": f"Iv1.{app.id}",
            "slug": app.slug,
            "node_id": node("A_", app.id),
            "owner": self.user(app.owner),
            "name": app.slug,
            "description": "",
            "external_url": self.web,
            "html_url": f"{self.web}/apps/{app.slug}",
            "created_at": iso(app.created),
            "updated_at": iso(app.created),
            "permissions": {"metadata": "read", **app.rights},
            "events": [],
        }

    def _reactions(self, url: str) -> Json:
        return {"url": f"{url}/reactions", "total_count": 0, **dict.fromkeys(_REACTIONS, 0)}

    def issue(self, repo: Repo, issue: Issue) -> Json:
        """An issue, or a pull request seen as one."""
        url = f"{self.api}/repos/{repo.full_name}/issues/{issue.number}"
        kind = "pull" if isinstance(issue, Pull) else "issues"
        found = {
            "url": url,
            "repository_url": f"{self.api}/repos/{repo.full_name}",
            "labels_url": url + "/labels{/name}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "html_url": f"{self.web}/{repo.full_name}/{kind}/{issue.number}",
            "id": issue.id,
            "node_id": node("I_", issue.id),
            "number": issue.number,
            "title": issue.title,
            "user": self.user(issue.by),
            "labels": self.labels(repo, issue),
            "state": issue.state,
            "locked": False,
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "comments": len(issue.comments),
            "created_at": iso(issue.created),
            "updated_at": iso(issue.updated),
            "closed_at": maybe(issue.closed),
            "author_association": self.association(repo, issue.by),
            "active_lock_reason": None,
            "body": issue.body,
            "reactions": self._reactions(url),
            "timeline_url": f"{url}/timeline",
            "performed_via_github_app": self.app(self.world.apps.get(issue.app or 0)),
            "state_reason": issue.reason,
            "closed_by": self.user(issue.closed_by) if issue.closed_by else None,
        }
        if isinstance(issue, Pull):
            page = f"{self.web}/{repo.full_name}/pull/{issue.number}"
            found["draft"] = issue.draft
            found["pull_request"] = {
                "url": f"{self.api}/repos/{repo.full_name}/pulls/{issue.number}",
                "html_url": page,
                "diff_url": f"{page}.diff",
                "patch_url": f"{page}.patch",
                "merged_at": maybe(issue.merged),
            }
        return found

    def comment(self, repo: Repo, issue: Issue, comment: Comment) -> Json:
        """A comment."""
        base = f"{self.api}/repos/{repo.full_name}/issues"
        kind = "pull" if isinstance(issue, Pull) else "issues"
        page = f"{self.web}/{repo.full_name}/{kind}/{issue.number}"
        return {
            "url": f"{base}/comments/{comment.id}",
            "html_url": f"{page}#issuecomment-{comment.id}",
            "issue_url": f"{base}/{issue.number}",
            "id": comment.id,
            "node_id": node("IC_", comment.id),
            "user": self.user(comment.by),
            "created_at": iso(comment.created),
            "updated_at": iso(comment.created),
            "author_association": self.association(repo, comment.by),
            "body": comment.body,
            "reactions": self._reactions(f"{base}/comments/{comment.id}"),
            "performed_via_github_app": self.app(self.world.apps.get(comment.app or 0)),
        }

    def review(self, repo: Repo, pull: Pull, review: Review) -> Json:
        """A review."""
        page = f"{self.web}/{repo.full_name}/pull/{pull.number}#pullrequestreview-{review.id}"
        url = f"{self.api}/repos/{repo.full_name}/pulls/{pull.number}"
        return {
            "id": review.id,
            "node_id": node("PRR_", review.id),
            "user": self.user(review.by),
            "body": review.body,
            "state": review.state,
            "html_url": page,
            "pull_request_url": url,
            "author_association": self.association(repo, review.by),
            "_links": {"html": {"href": page}, "pull_request": {"href": url}},
            "submitted_at": iso(review.at),
            "commit_id": review.commit,
        }

    def event(self, repo: Repo, event: Event) -> Json:
        """An event of an issue."""
        url = f"{self.api}/repos/{repo.full_name}"
        more = dict(event.more)
        for name in ("review_requester", "requested_reviewer"):
            if name in more:
                more[name] = self.user(more[name])
        return {
            "id": event.id,
            "node_id": node("EV_", event.id),
            "url": f"{url}/issues/events/{event.id}",
            "actor": self.user(event.actor),
            "event": event.name,
            "commit_id": event.commit,
            "commit_url": f"{url}/commits/{event.commit}" if event.commit else None,
            "created_at": iso(event.at),
            **more,
            "performed_via_github_app": None,
        }

    def timeline(self, repo: Repo, issue: Issue) -> list[Json]:
        """All that happened to an issue, in order: events, comments, reviews and commits."""
        found: list[tuple[Any, int, Json]] = [(one.at, one.id, self.event(repo, one)) for one in issue.events]
        for comment in issue.comments:
            shown = self.comment(repo, issue, comment)
            also = {"event": "commented", "actor": shown["user"]}
            found.append((comment.created, comment.id, shown | also))
        if isinstance(issue, Pull):
            for review in issue.reviews:
                shown = self.review(repo, issue, review) | {
                    "event": "reviewed",
                    "state": review.state.lower(),
                }
                found.append((review.at, review.id, shown))
            found += [
                (issue.created, 0, {"event": "committed", **self.git_commit(repo, made)})
                for made in self._commits(repo, issue)
            ]
        return [shown for _, _, shown in sorted(found, key=lambda one: one[:2])]

    def _commits(self, repo: Repo, pull: Pull) -> list[Made]:
        return [repo.git.must(sha) for sha in repo.git.range(pull.base, pull.head)]

    # --- pull requests

    def _side(self, repo: Repo | None, owner: str, ref: str, sha: str) -> Json:
        return {
            "label": f"{owner}:{ref}",
            "ref": ref,
            "sha": sha,
            "user": self.user(owner),
            "repo": self.repo(repo) if repo is not None else None,
        }

    def pull_in_list(self, repo: Repo, pull: Pull) -> Json:
        """A pull request as it stands in a list: without who merged it, and whether it could be."""
        url = f"{self.api}/repos/{repo.full_name}"
        page = f"{self.web}/{repo.full_name}/pull/{pull.number}"
        issue = self.issue(repo, pull)
        links = {
            "self": f"{url}/pulls/{pull.number}",
            "html": page,
            "issue": f"{url}/issues/{pull.number}",
            "comments": f"{url}/issues/{pull.number}/comments",
            "review_comments": f"{url}/pulls/{pull.number}/comments",
            "review_comment": url + "/pulls/comments{/number}",
            "commits": f"{url}/pulls/{pull.number}/commits",
            "statuses": f"{url}/statuses/{pull.head}",
        }
        urls = ("issue", "comments", "review_comments", "review_comment", "commits", "statuses")
        same = ("number", "title", "user", "state", "locked", "assignee", "assignees", "milestone")
        also = ("created_at", "updated_at", "closed_at", "author_association", "active_lock_reason", "body")
        head_repo = self.world.repos.get(pull.head_repo or "")
        return {
            "url": links["self"],
            "id": pull.pull_id,
            "node_id": node("PR_", pull.pull_id),
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            **{f"{name}_url": links[name] for name in urls},
            **{name: issue[name] for name in (*same, *also)},
            "labels": [one | {"description": one["description"] or ""} for one in issue["labels"]],
            "merged_at": maybe(pull.merged),
            "merge_commit_sha": pull.merge_commit
            or pull.trial,  # the trial is a trap for whoever takes it for one
            "requested_reviewers": [self.user(one) for one in pull.reviewers],
            "requested_teams": [],
            "head": self._side(head_repo, pull.head_owner, pull.head_ref, pull.head),
            "base": self._side(repo, repo.owner, pull.base_ref, pull.base),
            "_links": {name: {"href": href} for name, href in links.items()},
            "auto_merge": self._auto_merge(pull),
            "draft": pull.draft,
        }

    def _auto_merge(self, pull: Pull) -> Json | None:
        if pull.auto_merge is None:
            return None
        return {
            "enabled_by": self.user(pull.auto_merge["by"]),
            "merge_method": pull.auto_merge["method"],
            "commit_title": f"Merge pull request #{pull.number} from {pull.head_owner}/{pull.head_ref}",
            "commit_message": pull.title,
        }

    def pull(self, repo: Repo, pull: Pull) -> Json:
        """A pull request, at length."""
        mergeable = self._mergeable(repo, pull)
        shown = self.pull_in_list(repo, pull)
        state = {None: "unknown", True: "clean", False: "dirty"}[mergeable]
        diff = numbers(repo, pull.base, pull.head)
        merged = pull.merged is not None
        return shown | {
            "merged": merged,
            "mergeable": mergeable,
            "rebaseable": mergeable,
            "mergeable_state": "draft" if pull.draft else state,
            "merged_by": self.user(pull.merged_by) if pull.merged_by else None,
            "comments": len(pull.comments),
            "review_comments": 0,
            "maintainer_can_modify": False,
            "commits": len(repo.git.range(pull.base, pull.head)),
            "additions": diff.additions,
            "deletions": diff.deletions,
            "changed_files": diff.files,
        }

    def _mergeable(self, repo: Repo, pull: Pull) -> bool | None:
        base = repo.branch(pull.base_ref)
        if pull.state == "closed" or base is None:
            return None
        if pull.unknown > 0:
            pull.unknown -= 1
            return None
        pull.trial = trial_merge(repo, pull, base)
        return pull.trial is not None
