"""The programs of a runner's machine: with gitbus on it already, or with what pip installs.

Example: ``image(tmp_path / "bin")``.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

from gitbus import __version__

IMAGE = """#!/bin/sh
if [ "$1 $2 $3" = "-m pip install" ]; then
    for wanted; do :; done
    [ "$wanted" = "gitbus=={version}" ] && exit 0
    echo "this machine has gitbus {version}, not $wanted" >&2 && exit 1
fi
PYTHONPATH="{root}" exec "{python}"{words} "$@"
"""


def image(folder: Path) -> Path:
    """Make the programs of a machine that has gitbus already, as it stands here: nothing is installed on it."""
    folder.mkdir(parents=True, exist_ok=True)
    root = Path(__file__).resolve().parents[2]
    programs = {"python": "", "gitbus": " -m gitbus", "gitbus-askpass": " -m gitbus.askpass"}
    for name, words in programs.items():
        script = folder / name
        text = IMAGE.format(version=__version__, root=root, python=sys.executable, words=words)
        script.write_text(text, "utf-8")
        script.chmod(0o755)
    return folder


def bare_image(folder: Path) -> tuple[Path, dict[str, str]]:
    """Make a machine with Python and what gitbus needs, and an index that holds gitbus as a wheel.

    Returns:
        The machine's programs, and the variables that make pip use the index.
    """
    root = Path(__file__).resolve().parents[2]
    wheels, venv = folder / "wheels", folder / "venv"
    options = ["--no-build-isolation"] if find_spec("hatchling") else []
    _quietly(
        sys.executable, "-m", "pip", "wheel", "--no-deps", *options, "--wheel-dir", str(wheels), str(root)
    )
    _quietly(sys.executable, "-m", "venv", str(venv))
    own = Path(sysconfig.get_path("purelib", vars={"base": str(venv), "platbase": str(venv)}))
    shared = folder / "shared"
    shared.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "gitbus" not in path.name and not path.name.startswith(("pip", "_distutils", "__pycache__")):
            (shared / path.name).symlink_to(path)
    (own / "shared.pth").write_text(f"{shared}\n", "utf-8")
    return venv / "bin", {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}


def _quietly(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
