"""Calls about accounts, apps and limits.

Example: ``GET /user/1001`` finds an account by its number, whatever its login is by now.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.github.api import Answer, Call, Fault, not_found, route, unprocessable
from tests.github.api_repos import REPO
from tests.github.rights import LEVELS
from tests.github.shapes import Json, iso
from tests.github.state import App, Token

_OTHERS = {"search": 30, "graphql": 5000, "integration_manifest": 5000, "source_import": 100, "scim": 15000}


@route("GET", "/rate_limit")
def rate_limit(call: Call) -> Answer:
    """What is left of the calls; to ask costs none."""
    token = call.token or Token("", "none", "", limit=60)
    core = {"limit": token.limit, "used": token.used, "remaining": token.remaining, "reset": token.reset}
    full = {
        name: {"limit": n, "used": 0, "remaining": n, "reset": token.reset} for name, n in _OTHERS.items()
    }
    return Answer({"resources": {"core": core, **full}, "rate": core})


@route("GET", "/meta")
def meta(call: Call) -> Answer:
    """What this GitHub is."""
    return Answer({"verifiable_password_authentication": True})


@route("GET", "/user")
def whoami(call: Call) -> Answer:
    """Who the token is."""
    if call.token is None:
        raise Fault(401, "Requires authentication")
    if call.token.kind in ("installation", "actions"):
        raise Fault(403, "Resource not accessible by integration")
    private = ("private_gists", "total_private_repos", "owned_private_repos", "disk_usage", "collaborators")
    more: dict[str, Any] = dict.fromkeys(private, 0)
    return Answer(call.shapes.whole_user(call.user.login) | more | {"two_factor_authentication": True})


@route("GET", "/users/{username}")
def get_user(call: Call) -> Answer:
    """An account by its login."""
    wanted = call.parameters["username"].lower()
    login = next((one for one in call.world.users if one.lower() == wanted), None)
    return Answer(call.shapes.whole_user(login)) if login is not None else not_found()


@route("GET", "/user/{account_id}")
def get_user_by_id(call: Call) -> Answer:
    """An account by its number."""
    user = call.world.user_of_id(call.number("account_id"))
    return Answer(call.shapes.whole_user(user.login)) if user is not None else not_found()


# --- apps


def _app(call: Call) -> App:
    if call.app is None:
        raise Fault(401, "A JSON web token could not be decoded")
    return call.app


@route("GET", "/app")
def get_app(call: Call) -> Answer:
    """The app that asks."""
    return Answer(call.shapes.app(_app(call)))


def _installation(call: Call, app: App) -> Json:
    owner = sorted(app.repos)[0].partition("/")[0] if app.repos else app.owner
    url = f"{call.shapes.api}/app/installations/{app.installation}"
    return {
        "id": app.installation,
        "account": call.shapes.user(owner),
        "repository_selection": "selected",
        "access_tokens_url": f"{url}/access_tokens",
        "repositories_url": f"{call.shapes.api}/installation/repositories",
        "html_url": f"{call.shapes.web}/settings/installations/{app.installation}",
        "app_id": app.id,
        "app_slug": app.slug,
        "target_id": call.world.users[owner].id,
        "target_type": "User",
        "permissions": {"metadata": "read", **app.rights},
        "events": [],
        "created_at": iso(app.created),
        "updated_at": iso(app.created),
        "single_file_name": None,
        "suspended_by": None,
        "suspended_at": None,
    }


@route("GET", f"{REPO}/installation")
def installation(call: Call) -> Answer:
    """The app's installation for a repository."""
    app = _app(call)
    if call.repo.full_name not in app.repos:
        not_found()
    return Answer(_installation(call, app))


@route("GET", "/app/installations/{installation_id}")
def get_installation(call: Call) -> Answer:
    """An installation of the app."""
    app = _app(call)
    return (
        Answer(_installation(call, app))
        if app.installation == call.number("installation_id")
        else not_found()
    )


@route("POST", "/app/installations/{installation_id}/access_tokens")
def access_token(call: Call) -> Answer:
    """A token of an installation, for an hour, with all rights of the app or some."""
    app = _app(call)
    if app.installation != call.number("installation_id"):
        not_found()
    wanted = call.given("permissions") or {}
    if any(LEVELS[level] > LEVELS[app.rights.get(right, "none")] for right, level in wanted.items()):
        unprocessable(message="The permissions requested are not granted to this installation.")
    names = call.given("repositories")
    chosen = (
        {one for one in app.repos if one.partition("/")[2] in names} if names is not None else set(app.repos)
    )
    if names is not None and len(chosen) != len(names):
        unprocessable(message="There is at least one repository that does not exist or is not accessible")
    rights = wanted or dict(app.rights)
    token = call.world.add_token("installation", app.bot, rights=rights, repos=chosen, app=app.id)
    token.expires = call.world.now() + timedelta(hours=1)
    data: Json = {
        "token": token.text,
        "expires_at": iso(token.expires),
        "permissions": {"metadata": "read", **rights},
        "repository_selection": "selected",
    }
    if names is not None:
        data["repositories"] = [call.shapes.repo(call.world.repos[one]) for one in sorted(chosen)]
    return Answer(data, 201)


@route("GET", "/installation/repositories")
def installed_repositories(call: Call) -> Answer:
    """The repositories that an installation's token may use."""
    if call.token is None or call.token.kind not in ("installation", "actions"):
        raise Fault(403, "You must authenticate with an installation access token.")
    found = [call.world.repos[one] for one in sorted(call.token.repos or ()) if one in call.world.repos]
    return call.many(found, call.shapes.repo, key="repositories")
