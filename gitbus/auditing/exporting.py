"""What an auditor takes away: findings, receipts and the whole history in one zip file.

Example: ``export_audit(hub, root, found, Path("audit.zip"))``.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import zipfile
from pathlib import Path

from gitbus import paths
from gitbus.auditing.values import Audited
from gitbus.effects import effect
from gitbus.history import Oid
from gitbus.hub.base import Hub
from gitbus.hub.run import Git, environment


def export_audit(hub: Hub, root: Oid, found: Audited, target: Path) -> None:
    """Write findings, receipts and a git bundle of the branch into one zip file."""
    tip = hub.look()[hub.main]
    git: Git = hub.store.git  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory(prefix="gitbus-") as folder:
        bundle = Path(folder) / "bus.bundle"
        ref = (
            hub.main
            if git.run("rev-parse", "--verify", "--quiet", hub.main).code == 0
            else "refs/gitbus/hub/" + hub.main.removeprefix(paths.HEADS)
        )
        subprocess.run(
            [*git.command("bundle", "create", "--quiet", str(bundle), ref)],
            check=True,
            capture_output=True,
            env=environment(),
            stdin=subprocess.DEVNULL,
        )
        effect("file-write", str(target))
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr(
                "audit.json", json.dumps({**found.document().as_json(), "root": root, "tip": tip}, indent=2)
            )
            for delta in hub.store.diff(None, hub.store.commit(tip).tree, "outbox"):
                if delta.new is not None and delta.path.endswith(".yaml"):
                    out.writestr(delta.path, hub.store.blob(delta.new.oid))
            out.write(bundle, "bus.bundle")
