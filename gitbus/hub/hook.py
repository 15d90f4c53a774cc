"""The hub's own hook: a push to the bus's branch keeps what was there, in the first line of history.

Example: ``install_hook(Path("acme.git"), "main")``.
"""

from __future__ import annotations

from pathlib import Path

_TEXT = r"""#!/bin/sh
# gitbus: what was on the bus's branch stays on its first-parent line.
ref=$1 old=$2 new=$3
[ "$ref" = "refs/heads/@BRANCH@" ] || exit 0
zero=0000000000000000000000000000000000000000
refuse() {
    echo "gitbus: $1" >&2
    echo "gitbus: to go on, fetch and do it again on the new tip:" >&2
    echo "gitbus:   git fetch origin && git reset --keep origin/@BRANCH@" >&2
    echo "gitbus: then merge or commit again (or run 'gitbus approve ITEM'); nothing is lost." >&2
    exit 1
}
[ "$old" = "$zero" ] && exit 0
[ "$new" = "$zero" ] && refuse "the bus's branch is never deleted"
[ "$old" = "$new" ] && exit 0
last=$(git rev-list --first-parent --parents "$old..$new" | tail -n 1)
set -- $last
[ "$2" = "$old" ] || refuse "this push would hide $old behind a merge or rewrite it"
exit 0
"""


def update_hook(branch: str) -> str:
    """Return the text of the ``update`` hook for a bus on this branch."""
    return _TEXT.replace("@BRANCH@", branch)


def install_hook(hub: Path, branch: str) -> None:
    """Write the hook into a bare repository."""
    path = hub / "hooks" / "update"
    path.parent.mkdir(exist_ok=True)
    path.write_text(update_hook(branch), "utf-8")
    path.chmod(0o755)


def only_ours(hub: Path, branch: str) -> bool:
    """Say whether a repository runs no hook but this one."""
    folder = hub / "hooks"
    if not folder.is_dir():
        return True
    active = [path for path in folder.iterdir() if not path.name.endswith(".sample")]
    return all(
        path.name == "update" and path.read_text("utf-8", "replace") == update_hook(branch) for path in active
    )
