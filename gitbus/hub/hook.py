"""The hub's own hook: a push to the bus's branch keeps what was there, on its first-parent line.

It is the same text for every hub; the branch stands in the hub's configuration.

Example: ``install_hook(Path("acme.git"))``.
"""

from __future__ import annotations

import os
from pathlib import Path

from gitbus.effects import effect

UPDATE_HOOK = r"""#!/bin/sh
# gitbus: what was on the bus's branch stays there, on its first-parent line.
GIT_NO_REPLACE_OBJECTS=1
export GIT_NO_REPLACE_OBJECTS
ref=$1 old=$2 new=$3
branch=$(git config --get gitbus.branch) || branch=main
[ "$ref" = "refs/heads/$branch" ] || exit 0
zero=0000000000000000000000000000000000000000
[ "$old" = "$zero" ] && exit 0
[ "$new" = "$old" ] && exit 0
if [ "$new" = "$zero" ]; then
    echo "gitbus: the branch $branch holds the bus and is never deleted." >&2
    exit 1
fi
oldest=$(git rev-list --first-parent --parents "$new" "^$old" | tail -n 1)
set -- $oldest
[ "$2" = "$old" ] && exit 0
cat >&2 <<END
gitbus: this push would hide $old, the tip of $branch, behind a merge or throw it away.
gitbus: (git pull into one's own merge does that.) To go on, keep what you have and do it again on the tip:
gitbus:   git branch kept-$new && git fetch origin && git reset --keep origin/$branch
gitbus: then approve or commit anew there (gitbus approve ITEM, or git cherry-pick from kept-$new).
END
exit 1
"""


def install_hook(hub: Path) -> None:
    """Write the hook into a bare repository."""
    path = hub / "hooks" / "update"
    effect("file-write", str(path))
    path.parent.mkdir(exist_ok=True)
    path.write_text(UPDATE_HOOK, "utf-8")
    path.chmod(0o755)


def is_installed(hub: Path) -> bool:
    """Say whether a repository runs this hook."""
    path = hub / "hooks" / "update"
    return os.access(path, os.X_OK) and _is_ours(path)


def only_ours(hub: Path) -> bool:
    """Say whether a repository runs no hook but this one."""
    folder = hub / "hooks"
    if not folder.is_dir():
        return True
    active = [path for path in folder.iterdir() if path.suffix != ".sample" and os.access(path, os.X_OK)]
    return all(path.name == "update" and _is_ours(path) for path in active)


def _is_ours(path: Path) -> bool:
    return path.is_file() and path.read_bytes() == UPDATE_HOOK.encode()
