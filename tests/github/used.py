"""What the actions that our workflows use do on a runner of tests: check out, hand files on, become an App.

Example: ``ACTIONS["actions/checkout"](machine, {"fetch-depth": "0"})``.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.github.runner import Machine


def basic(token: str) -> str:
    """Return a token as basic authentication has it."""
    return base64.b64encode(f"x-access-token:{token}".encode()).decode()


def _checkout(machine: Machine, given: Mapping[str, str]) -> None:
    """actions/checkout: the commit that started the run, with the history that was asked for."""
    token = given.get("token") or machine.contexts["github"]["token"]
    host, trigger = machine.runner.host, machine.trigger
    machine.git("init", "--quiet", "--initial-branch=checkout-none")
    machine.git("remote", "add", "origin", f"{host.web}/{host.repository}")
    options = [f"--filter={given['filter']}"] if given.get("filter") else []
    if given.get("fetch-depth") == "0":
        refs = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"]
    else:
        options += [f"--depth={given.get('fetch-depth') or 1}"]
        refs = [f"+{trigger.commit}:refs/remotes/origin/checkout"]
    if options and options[0].startswith("--filter"):
        machine.git("config", "remote.origin.promisor", "true")
        machine.git("config", "remote.origin.partialclonefilter", given["filter"])
    machine.git("fetch", "--quiet", "--no-tags", *options, "origin", *refs, token=token)
    if trigger.ref.startswith("refs/heads/"):
        branch = trigger.ref.removeprefix("refs/heads/")
        machine.git("checkout", "--quiet", "-B", branch, trigger.commit, token=token)
        if given.get("fetch-depth") == "0":
            machine.git("branch", "--quiet", f"--set-upstream-to=origin/{branch}")
    else:
        machine.git("fetch", "--quiet", "origin", trigger.commit, token=token)
        machine.git("checkout", "--quiet", "--detach", trigger.commit, token=token)
    if given.get("persist-credentials", "true") != "false":
        machine.git("config", "http.extraHeader", f"Authorization: Basic {basic(token)}")


def _setup_python(machine: Machine, given: Mapping[str, str]) -> None:
    """actions/setup-python: the machine has one already."""
    assert given["python-version"]
    assert (machine.runner.programs / "python").exists()


def _app_token(machine: Machine, given: Mapping[str, str]) -> dict[str, str]:
    """actions/create-github-app-token: an installation token with the rights that are asked for."""
    rights = {
        key.removeprefix("permission-").replace("-", "_"): value
        for key, value in given.items()
        if key.startswith("permission-")
    }
    return {"token": machine.runner.host.app_token(given["app-id"], given["private-key"], rights)}


def _upload(machine: Machine, given: Mapping[str, str]) -> None:
    """actions/upload-artifact."""
    target = machine.artifacts / given["name"]
    source = Path(given["path"])
    files = [path for path in source.rglob("*") if path.is_file()]
    assert files or given.get("if-no-files-found") == "ignore"
    for path in files:
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)


def _download(machine: Machine, given: Mapping[str, str]) -> None:
    """actions/download-artifact: every one that matches, each into a folder of its name."""
    for artifact in sorted(machine.artifacts.glob(given["pattern"])):
        shutil.copytree(artifact, Path(given["path"]) / artifact.name)


ACTIONS: Mapping[str, Callable[[Machine, Mapping[str, str]], dict[str, str] | None]] = {
    "actions/checkout": _checkout,
    "actions/setup-python": _setup_python,
    "actions/create-github-app-token": _app_token,
    "actions/upload-artifact": _upload,
    "actions/download-artifact": _download,
}
