"""Where there is no gpg, GitHub's commits are signed by an SSH key, and verified all the same."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
from tests.github import signing

data = b"tree 1\\n\\nhello"
signature = signing.sign(data)
assert "SSH SIGNATURE" in signature
assert signing.web_flow_key().startswith("ssh-ed25519 ")
assert signing._by_web_flow(data, signature)
assert not signing._by_web_flow(b"other", signature)
"""


def test_without_gpg(tmp_path: Path) -> None:
    for name in ("ssh-keygen", "git"):
        program = shutil.which(name)
        assert program is not None
        (tmp_path / name).symlink_to(program)
    env = {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", PROGRAM], env=env, check=True, cwd=ROOT)
