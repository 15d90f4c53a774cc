"""GitHub's own signing key, and what GitHub says of a commit's signature.

Rules: what the web flow makes is signed by the key made here (OpenPGP where ``gpg`` is there, else
SSH), once per process; a person's SSH signature is verified where the key is among the account's
signing keys and the committer's address is the account's. Nothing else is verified.

Example: ``verification(world, made)["reason"] == "unsigned"``.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.github.bare import Made
from tests.github.state import User, World

WEB_FLOW = "GitHub <noreply@github.com>"


@functools.cache
def _home() -> Path:
    home = Path(tempfile.mkdtemp(prefix="gh-"))
    home.chmod(0o700)
    atexit.register(_forget, home)
    return home


def _forget(home: Path) -> None:
    if shutil.which("gpgconf"):
        subprocess.run(["gpgconf", "--kill", "all"], env=_env(home), check=False, capture_output=True)
    shutil.rmtree(home, ignore_errors=True)


def _env(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "GNUPGHOME": str(home), "LC_ALL": "C"}


def _run(*command: str, data: bytes = b"", check: bool = True) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, input=data, env=_env(_home()), capture_output=True, check=check)


@functools.cache
def openpgp() -> bool:
    """Return whether the key is an OpenPGP one."""
    return bool(shutil.which("gpg") and shutil.which("gpgconf"))


@functools.cache
def _key() -> Path:
    """Make the key; returns the path of the SSH one, if it is one."""
    path = _home() / "web-flow"
    if openpgp():
        _run("gpg", "--batch", "--passphrase", "", "--quick-gen-key", WEB_FLOW, "ed25519", "sign", "never")
    else:
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", WEB_FLOW, "-f", str(path))
    return path


def web_flow_key() -> str:
    """Return the public key with which the web flow signs."""
    path = _key()
    if openpgp():
        return _run("gpg", "--armor", "--export").stdout.decode()
    return path.with_suffix(".pub").read_text("utf-8").strip()


def sign(data: bytes) -> str:
    """Return the web flow's armored signature of a commit's bytes."""
    path = _key()
    if openpgp():
        done = _run("gpg", "--batch", "--armor", "--detach-sign", data=data)
    else:
        done = _run("ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(path), data=data)
    return done.stdout.decode().strip() + "\n"  # GitHub leaves an empty line at the end


def with_signature(data: bytes, signature: str) -> bytes:
    """Return a commit's bytes with a signature header."""
    head, _, message = data.partition(b"\n\n")
    return head + b"\ngpgsig " + signature.replace("\n", "\n ").encode() + b"\n\n" + message


@functools.cache
def _by_web_flow(data: bytes, signature: str) -> bool:
    path = _home() / "signature"
    path.write_text(signature + "\n")
    if not openpgp():
        return _by_ssh(data, signature, web_flow_key())
    if "PGP SIGNATURE" not in signature:
        return False
    return _run("gpg", "--batch", "--verify", str(path), "-", data=data, check=False).returncode == 0


@functools.cache
def _by_ssh(data: bytes, signature: str, public: str) -> bool:
    if "SSH SIGNATURE" not in signature:
        return False
    allowed, path = _home() / "allowed", _home() / "ssh-signature"
    allowed.write_text(f"someone {public}\n")
    path.write_text(signature + "\n")
    ask = ("ssh-keygen", "-Y", "verify", "-n", "git", "-I", "someone", "-f", str(allowed), "-s", str(path))
    return _run(*ask, data=data, check=False).returncode == 0


def _reason(world: World, made: Made) -> str:
    if made.signature is None:
        return "unsigned"
    if made.committer.ident == WEB_FLOW and _by_web_flow(made.payload, made.signature):
        return "valid"
    owner = _owner(world, made)
    if owner is None:
        return "unknown_key"
    committer = world.user_of_email(made.committer.email)
    if committer is None:
        return "no_user"
    return "valid" if committer is owner else "bad_email"


def _owner(world: World, made: Made) -> User | None:
    for user in world.users.values():
        for key in user.signing_keys:
            if _by_ssh(made.payload, made.signature or "", key):
                return user
    return None


def verification(world: World, made: Made) -> dict[str, Any]:
    """Return what the API says of a commit's signature."""
    reason = _reason(world, made)
    signed = made.signature is not None
    return {
        "verified": reason == "valid",
        "reason": reason,
        "signature": made.signature,
        "payload": made.payload.decode(errors="replace") if signed else None,
        "verified_at": made.committer.at.strftime("%Y-%m-%dT%H:%M:%SZ") if reason == "valid" else None,
    }
