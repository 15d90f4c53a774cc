"""The files that a bus on GitHub holds for GitHub: workflows, CODEOWNERS, SETUP.md; rendered, pure.

Rules: the templates in ``files/`` are YAML by themselves. A comment line ``#: name`` takes the part
``name``, indented as it stands; ``__NAME__`` takes a value that was checked to be a plain word. Nothing
that a worker wrote ever gets here.

Example: ``rendered(Setting(branch="main", root="1a2b…", version="1.0.0"))[".github/workflows/gitbus.yml"]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources

from gitbus.errors import Refused
from gitbus.history import Oid

WORKFLOWS = ".github/workflows/"
STUBS = ".github/default-branch/"
"""Where the workflows for another default branch stand until somebody puts them there."""

SEND = "gitbus-send"
CONDUCT = "gitbus-conduct"
WORK = "gitbus-work"
"""The environments: what they hold is for the bus's branch alone."""

APP_ID = "GITBUS_APP_ID"
APP_KEY = "GITBUS_APP_KEY"

_PART = re.compile(r"^(?P<indent> *)#: (?P<name>[a-z-]+)\n", re.MULTILINE)
_VALUE = re.compile(r"__([A-Z]+)__")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_SECRET = re.compile(r"(?!GITHUB_)[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Setting:
    """What the files depend on.

    ``secrets`` are the names of the channels' environment variables, ``workers`` those that each worker
    run by CI inherits. ``default`` is the repository's default branch where that is not the bus's.
    """

    branch: str
    root: Oid
    version: str
    name: str = "bus"
    app: bool = False
    secrets: tuple[str, ...] = ()
    workers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    owners: tuple[str, ...] = ()  # logins of the approvers
    default: str | None = None


def rendered(setting: Setting) -> dict[str, bytes]:
    """Return the files, by their paths in the bus.

    Raises:
        Refused: a branch or a variable has a name that a workflow cannot hold.
    """
    _plain(setting)
    found = {WORKFLOWS + name: _workflow(name, setting) for name in workflows(setting)}
    found |= {STUBS + name: _stub(name, setting) for name in stubs(setting)}
    if setting.owners:
        found[".github/CODEOWNERS"] = _owners(setting)
    return {path: text.encode() for path, text in found.items()}


def workflows(setting: Setting) -> tuple[str, ...]:
    """Return the file names of the workflows."""
    if setting.app:
        return ("gitbus-conduct.yml", "gitbus-work.yml", "gitbus-send.yml", "gitbus-check.yml")
    return ("gitbus.yml", "gitbus-check.yml")


_STUBBED: Mapping[str, str] = {
    "gitbus.yml": '    - cron: "17 * * * *"\n',
    "gitbus-conduct.yml": '    - cron: "17 * * * *"\n',
    "gitbus-send.yml": '    - cron: "32 * * * *"\n',
    "gitbus-work.yml": "",
}
"""The workflows that are scheduled or started by name, and when."""


def stubs(setting: Setting) -> tuple[str, ...]:
    """Return which workflows need a namesake on the default branch, where that is not the bus's."""
    return tuple(name for name in workflows(setting) if name in _STUBBED) if setting.default else ()


def _plain(setting: Setting) -> None:
    if not _PLAIN.fullmatch(setting.branch):
        raise Refused(
            f"a workflow cannot name the branch {setting.branch!r}",
            rule="bad-branch",
            remedy="give the bus a branch of letters, digits, dots, dashes and slashes",
        )
    for name in (*setting.secrets, *(one for names in setting.workers.values() for one in names)):
        if not _SECRET.fullmatch(name):
            raise Refused(
                f"GitHub has no secret called {name!r}",
                rule="bad-secret-name",
                remedy="name it with letters, digits and _, and not GITHUB_ at its beginning",
            )


def _workflow(name: str, setting: Setting) -> str:
    return _filled(packaged(name), setting, {"WORKFLOW": name})


def _stub(name: str, setting: Setting) -> str:
    return _filled(packaged("stub.yml"), setting, {"WORKFLOW": name, "NAME": name.removesuffix(".yml")})


def _filled(text: str, setting: Setting, more: Mapping[str, str]) -> str:
    """Return a template with its parts and values in place."""
    values = {
        "BRANCH": setting.branch,
        "ROOT": setting.root,
        "VERSION": setting.version,
        "TOKEN": "${{ steps.app.outputs.token }}" if setting.app else "${{ github.token }}",
        "DUE": "due" if setting.app else "conduct",
        **more,
    }
    return fill(text, _parts(setting, more["WORKFLOW"]), values)


def fill(text: str, parts: Mapping[str, str], values: Mapping[str, str]) -> str:
    """Return a template with its parts and values in place.

    Args:
        text: the template.
        parts: what stands for each line ``#: name``.
        values: what stands for each ``__NAME__``.
    """

    def part(match: re.Match[str]) -> str:
        body = _PART.sub(part, parts[match["name"]])
        return "".join(match["indent"] + line if line.strip() else line for line in body.splitlines(True))

    return _VALUE.sub(lambda found: values[found[1]], _PART.sub(part, text))


def _parts(setting: Setting, workflow: str) -> dict[str, str]:
    worker_secrets = sorted({name for names in setting.workers.values() for name in names})
    app = packaged("app.part.yml")
    return {
        **{name: packaged(f"{name}.part.yml") for name in _FILED},
        "app": app,
        "app-conduct": app + "    permission-issues: write\n    permission-pull-requests: write\n",
        "app-send": app + "    permission-pull-requests: read\n",
        "channel-secrets": "".join(f"{name}: ${{{{ secrets.{name} }}}}\n" for name in setting.secrets),
        "worker-secrets": "".join(_worker_secret(name, setting) for name in worker_secrets),
        "work-environment": f"environment: {WORK}\n" if worker_secrets else "",
        "stub-schedule": f"schedule:\n{_STUBBED[workflow][2:]}" if _STUBBED.get(workflow) else "",
    }


_FILED = ("head", "prepare", "relay", "work", "deliver", "send")


def _worker_secret(name: str, setting: Setting) -> str:
    """Return a worker's variable, which holds nothing in the jobs of the others."""
    whose = [
        f"matrix.worker == '{worker}'" for worker, names in sorted(setting.workers.items()) if name in names
    ]
    condition = whose[0] if len(whose) == 1 else f"({' || '.join(whose)})"
    return f"{name}: ${{{{ {condition} && secrets.{name} || '' }}}}\n"


def _owners(setting: Setting) -> str:
    who = " ".join(f"@{login}" for login in setting.owners)
    head = "# Who is asked to look when a pull request touches what decides: rules, people, workers, workflows.\n"
    return head + "".join(f"{path} {who}\n" for path in ("/.github/", "/bus.yaml", "/workers/", "/SETUP.md"))


def packaged(name: str) -> str:
    """Return the text of a file that comes with gitbus."""
    return (resources.files(__package__) / "files" / name).read_text("utf-8")
