"""``SETUP.md``: what people have to do on GitHub for a bus, and why. Rendered, pure.

Example: ``guide(Setting(branch="main", root="1a2b…", version="1.0.0"))``.
"""

from __future__ import annotations

from gitbus.forge.github.setup.rendering import Setting, fill, packaged, stubs
from gitbus.forge.github.setup.wanted import RULESETS, environments, rulesets


def guide(setting: Setting) -> bytes:
    """Return the text of ``SETUP.md``."""
    parts = {
        "md-stubs": packaged("md-stubs.part.md") if setting.default else "",
        "md-identity": packaged("md-app.part.md" if setting.app else "md-alone.part.md"),
        "md-rulesets": _rulesets(setting),
        "md-environments": "".join(
            f"| `{one.name}` | {_names(one.holds)} | `{setting.branch}` alone: {one.why} |\n"
            for one in environments(setting)
        ),
        "md-secrets": _secrets(setting),
        "md-actions": "" if setting.app else "- **GitHub Actions may open pull requests** (section 2).\n",
    }
    values = {
        "NAME": setting.name,
        "BRANCH": setting.branch,
        "ROOT": setting.root,
        "DEFAULT": setting.default or "",
        "STUBS": " ".join(stubs(setting)),
    }
    return fill(packaged("SETUP.md"), parts, values).encode()


def _rulesets(setting: Setting) -> str:
    named = rulesets(setting, app=0 if setting.app else None, organisation=True)
    rows = (f"| {one['name']} | {RULESETS[one['name']].format(branch=setting.branch)} |\n" for one in named)
    return "| ruleset | says |\n|---|---|\n" + "".join(rows) + "\n"


def _secrets(setting: Setting) -> str:
    rows = [
        f"| `{name}` | `{one.name}` |\n"
        for one in environments(setting)
        for name in one.holds
        if name != "GITBUS_APP_ID"
    ]
    if not rows:
        return "None yet: no channel needs one.\n\n"
    return "| secret | in the environment |\n|---|---|\n" + "".join(rows) + "\n"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing yet"


def left(setting: Setting, *, pushed: bool, applied: bool) -> list[str]:
    """Return what people have still to do, a line each.

    Args:
        setting: the bus.
        pushed: the hub is on GitHub already.
        applied: what can be made through the API was made.
    """
    url = "https://github.com/OWNER/NAME.git"
    found = (
        []
        if pushed
        else [f"git remote set-url origin {url} && git push --set-upstream origin {setting.branch}"]
    )
    if setting.app:
        found.append("make the GitHub App and put GITBUS_APP_ID and GITBUS_APP_KEY in place (SETUP.md, 2)")
    if not applied:
        found.append("gitbus init . --github --apply, with a token that administers the repository")
    if setting.secrets or any(setting.workers.values()):
        found.append("put the secrets into their environments (SETUP.md, 5)")
    if setting.default:
        found.append(f"put {', '.join(stubs(setting))} on {setting.default} (SETUP.md, 1)")
    return [*found, "see that all is well: gitbus doctor --github"]
