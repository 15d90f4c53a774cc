"""Signatures of commits: making one as git does, and finding out which known key made one.

Rules: what is verified is the commit object without its signature header, byte for byte. A key is
found by the bytes of the key itself, never by a name or an address. A commit with more than one
signature header is badly signed.

Sources: OpenSSH PROTOCOL.sshsig; RFC 9580 through gpg's ``--status-fd`` (doc/DETAILS).

Example: ``Verifier(database).check(commit, ("ssh-ed25519 AAAA…",)).verdict``.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from gitbus.errors import Refused
from gitbus.history import Oid, Signature
from gitbus.hub.base import Author, Draft
from gitbus.hub.database import Database
from gitbus.hub.objects import split_signature
from gitbus.hub.run import Git, environment, said

_SSH = b"-----BEGIN SSH SIGNATURE-----"
_PGP = b"-----BEGIN PGP SIGNATURE-----"
_STATUS = re.compile(r"^\[GNUPG:\] (\w+)(?: (.*))?$", re.MULTILINE)
_BAD = frozenset(["BADSIG", "ERRSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG"])


def sign_commit(git: Git, user: Git, draft: Draft, author: Author, stamp: str) -> Oid:
    """Write a signed commit with the user's own key and git's own means; return its id.

    Raises:
        Refused: git could not sign (rule ``cannot-sign``).
    """
    parents = [part for one in draft.parents for part in ("-p", one)]
    who = {
        "GIT_AUTHOR_NAME": author.name,
        "GIT_AUTHOR_EMAIL": author.email,
        "GIT_AUTHOR_DATE": stamp,
        "GIT_COMMITTER_NAME": author.name,
        "GIT_COMMITTER_EMAIL": author.email,
        "GIT_COMMITTER_DATE": stamp,
        "GIT_OBJECT_DIRECTORY": str(git.git_dir / "objects"),
    }
    ran = user.run(
        "commit-tree", "-S", draft.tree, *parents, "-F", "-", given=draft.message.encode(), env=who
    )
    if ran.code != 0:
        raise Refused(
            f"git could not sign: {said(ran.err)}",
            rule="cannot-sign",
            remedy="set user.signingkey and gpg.format (ssh or openpgp), or see `gitbus doctor`",
        )
    return ran.out.decode().strip()


class Verifier:
    """Checks signatures of commits, each once for each set of keys."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._known: dict[tuple[Oid, tuple[str, ...]], Signature] = {}

    def check(self, commit: Oid, keys: tuple[str, ...]) -> Signature:
        """Return what the commit's signature is worth, looked at with these keys."""
        asked = (commit, keys)
        found = self._known.get(asked)
        if found is None:
            found = self._check(commit, keys)
            if found.verdict != "unasked":
                self._known[asked] = found
        return found

    def _check(self, commit: Oid, keys: tuple[str, ...]) -> Signature:
        payload, signatures = split_signature(self.database.read(commit)[1])
        if not signatures:
            return Signature("none")
        if len(signatures) > 1:
            return Signature("bad", detail="more than one signature")
        signature = signatures[0]
        if signature.startswith(_SSH):
            return _ssh(payload, signature, keys)
        if signature.startswith(_PGP):
            return _pgp(payload, signature, keys)
        return Signature("unknown", detail="neither an SSH nor an OpenPGP signature")


# --- SSH


def _ssh(payload: bytes, signature: bytes, keys: tuple[str, ...]) -> Signature:
    blob = _ssh_key(signature)
    if blob is None:
        return Signature("bad", detail="the signature cannot be read")
    fingerprint = "SHA256:" + base64.b64encode(_sha256(blob)).decode().rstrip("=")
    key = next((one for one in keys if _ssh_blob(one) == blob), None)
    if key is None:
        return Signature("unknown", fingerprint=fingerprint)
    program = shutil.which("ssh-keygen")
    if program is None:
        return Signature("unasked", fingerprint=fingerprint, detail="ssh-keygen is not on this machine")
    with tempfile.TemporaryDirectory(prefix="gitbus-") as folder:
        signers, file = Path(folder) / "signers", Path(folder) / "signature"
        signers.write_text(f'signer namespaces="git" {" ".join(key.split()[:2])}\n', "utf-8")
        file.write_bytes(signature + b"\n")
        done = subprocess.run(
            [program, "-Y", "verify", "-n", "git", "-f", str(signers), "-I", "signer", "-s", str(file)],
            input=payload,
            capture_output=True,
            check=False,
            env=environment(),
        )
    if done.returncode != 0:
        return Signature("bad", key, fingerprint, "the signature does not fit the commit")
    return Signature("good", key, fingerprint)


def _ssh_key(signature: bytes) -> bytes | None:
    """Return the public key that an SSH signature says it was made with."""
    lines = [line.strip() for line in signature.splitlines() if line and not line.startswith(b"-----")]
    try:
        data = base64.b64decode(b"".join(lines), validate=True)
    except ValueError:
        return None
    if not data.startswith(b"SSHSIG"):
        return None
    size = int.from_bytes(data[10:14], "big")
    return data[14 : 14 + size] if len(data) >= 14 + size else None


def _ssh_blob(key: str) -> bytes | None:
    parts = key.split()
    if len(parts) < 2 or key.startswith("-----") or "-cert-" in parts[0]:
        return None
    try:
        return base64.b64decode(parts[1], validate=True)
    except ValueError:
        return None


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


# --- OpenPGP


def _pgp(payload: bytes, signature: bytes, keys: tuple[str, ...]) -> Signature:
    program = shutil.which("gpg")
    if program is None:
        return Signature("unasked", detail="gpg is not on this machine")
    blocks = [key for key in keys if key.startswith("-----BEGIN PGP")]
    with tempfile.TemporaryDirectory(prefix="gitbus-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        owners = {fingerprint: key for key in blocks for fingerprint in _import(program, home, key)}
        file = home / "signature"
        file.write_bytes(signature + b"\n")
        status = _gpg(program, home, "--verify", str(file), "-", given=payload)
    return _judged(status, owners)


def _judged(status: str, owners: dict[str, str]) -> Signature:
    found = _STATUS.findall(status)
    words = {word for word, _ in found}
    primary = next((rest.split()[-1] for word, rest in found if word == "VALIDSIG"), None)
    if words & _BAD or "KEYREVOKED" in words or "SIGEXPIRED" in words:
        missing = "NO_PUBKEY" in words
        named = next((rest.split()[0] for word, rest in found if word in _BAD), None)
        return Signature(
            "unknown" if missing else "bad", fingerprint=named, detail=" ".join(sorted(words & _BAD))
        )
    if primary is None or "GOODSIG" not in words:
        return Signature("bad", detail="the signature cannot be read")
    if sum(word == "GOODSIG" for word, _ in found) > 1:
        return Signature("bad", primary, detail="more than one signature")
    key = owners.get(primary)
    return Signature("good" if key else "unknown", key, primary)


def _import(program: str, home: Path, key: str) -> list[str]:
    status = _gpg(program, home, "--import", given=key.encode())
    return [rest.split()[1] for word, rest in _STATUS.findall(status) if word == "IMPORT_OK"]


def _gpg(program: str, home: Path, *arguments: str, given: bytes) -> str:
    command = [
        program,
        "--homedir",
        str(home),
        "--batch",
        "--no-tty",
        "--no-auto-key-retrieve",
        "--no-autostart",
    ]
    done = subprocess.run(
        [*command, "--trust-model", "always", "--status-fd", "1", *arguments],
        input=given,
        capture_output=True,
        check=False,
        env={**environment(), "GNUPGHOME": str(home), "LC_ALL": "C"},
    )
    return done.stdout.decode("utf-8", "replace")
