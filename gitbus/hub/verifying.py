"""Whose signature a commit bears, looked at with a set of known keys.

Rules: what is verified is the commit object without its signature header, byte for byte. A key is
found by the bytes of the key itself, never by a name or an address. A commit with more than one
signature header is badly signed, and so is one whose header stands where it changes what the rest
says. What could not be checked for a reason of this machine is
``unasked``, never ``bad`` or ``unknown``, because those take an approval away.

Sources: OpenSSH PROTOCOL.sshsig; GnuPG doc/DETAILS for ``--status-fd``.

Example: ``Verifier(database).check(commit, ["ssh-ed25519 AAAA…"]).verdict``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import shutil
import tempfile
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from gitbus.errors import Unreachable
from gitbus.history import Oid, Signature
from gitbus.hub.database import Database
from gitbus.hub.objects import parse_commit, split_signature
from gitbus.hub.run import Ran, environment, run

_SSH = b"-----BEGIN SSH SIGNATURE-----"
_PGP = (b"-----BEGIN PGP SIGNATURE-----", b"-----BEGIN PGP MESSAGE-----")
_PGP_KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
_SSH_TYPE = re.compile(r"(ssh|ecdsa|sk)-[A-Za-z0-9@.-]+")
_STATUS = re.compile(r"^\[GNUPG:\] (\w+)(?: (.*))?$", re.MULTILINE)
_VERDICTS = frozenset(["GOODSIG", "BADSIG", "ERRSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG"])
_WHY = {
    "BADSIG": "the signature does not fit the commit",
    "EXPSIG": "the signature is expired",
    "EXPKEYSIG": "the key is expired",
    "REVKEYSIG": "the key is revoked",
    "ERRSIG": "the signature cannot be checked",
}
_NO_PUBLIC_KEY = "9"
_UNSUPPORTED = "4"


class Verifier:
    """Checks signatures of commits, each once for each set of keys.

    Args:
        database: where the commits are.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._known: dict[tuple[Oid, frozenset[str]], Signature] = {}
        self._rings: dict[tuple[str, ...], KeyRing] = {}

    def check(self, commit: Oid, keys: Collection[str]) -> Signature:
        """Return what the commit's signature is worth, looked at with these keys."""
        asked = (commit, frozenset(keys))
        found = self._known.get(asked)
        if found is None:
            found = self._check(commit, sorted(asked[1]))
            if found.verdict != "unasked":
                self._known[asked] = found
        return found

    def _check(self, commit: Oid, keys: list[str]) -> Signature:
        kind, data = self.database.read(commit)
        if kind != "commit":
            raise KeyError(commit)
        payload, signatures = split_signature(data)
        if not signatures:
            return Signature("none")
        if len(signatures) > 1 or signatures[0][0] != b"gpgsig":
            return Signature("bad", detail="more than one signature, or one for another hash")
        if not _reads_as_signed(commit, data, payload):
            return Signature("bad", detail="the signature stands where it hides a part of what was signed")
        signature = signatures[0][1]
        try:
            if signature.startswith(_SSH):
                return check_ssh(payload, signature, keys)
            if signature.startswith(_PGP):
                return self._ring(keys).check(payload, signature)
        except (OSError, Unreachable) as error:
            return Signature("unasked", detail=f"it could not be checked here: {error}")
        return Signature("unknown", detail="neither an SSH nor an OpenPGP signature")

    def _ring(self, keys: list[str]) -> KeyRing:
        blocks = tuple(key for key in keys if key.strip().startswith(_PGP_KEY))
        if blocks not in self._rings:
            self._rings[blocks] = KeyRing(blocks)
        return self._rings[blocks]

    def close(self) -> None:
        """Delete the imported keys."""
        for ring in self._rings.values():
            ring.close()
        self._rings = {}


def _reads_as_signed(oid: Oid, data: bytes, payload: bytes) -> bool:
    """Say whether a commit shows the same tree, parents, people and message as the bytes that were signed.

    A parent after the signature header is none, though it was signed as one.
    """
    try:
        return replace(parse_commit(oid, data), signature=None) == parse_commit(oid, payload)
    except ValueError:
        return False


# --- SSH


def check_ssh(payload: bytes, signature: bytes, keys: Collection[str]) -> Signature:
    """Check an SSH signature; the key in it has to be one of ``keys``, byte for byte."""
    blob = _embedded_key(signature)
    if blob is None:
        return Signature("bad", detail="the signature cannot be read")
    digest = hashlib.sha256(blob).digest()
    fingerprint = "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
    key = next((one for one in keys if _key_blob(one) == blob), None)
    if key is None:
        return Signature("unknown", fingerprint=fingerprint)
    program = shutil.which("ssh-keygen")
    if program is None:
        return Signature("unasked", fingerprint=fingerprint, detail="ssh-keygen is not on this machine")
    with tempfile.TemporaryDirectory(prefix="gitbus-") as folder:
        signers, file = Path(folder) / "signers", Path(folder) / "signature"
        signers.write_text(f'signer namespaces="git" {" ".join(key.split()[:2])}\n', "utf-8")
        file.write_bytes(signature)
        command = [program, "-Y", "verify", "-n", "git", "-f", str(signers), "-I", "signer", "-s", str(file)]
        ran = run(command, given=payload)
    if ran.code == 0:
        return Signature("good", key, fingerprint)
    if ran.code < 0:
        return Signature("unasked", fingerprint=fingerprint, detail="ssh-keygen was ended by a signal")
    return Signature("bad", key, fingerprint, _WHY["BADSIG"])


def _embedded_key(signature: bytes) -> bytes | None:
    """Return the public key that an SSH signature says it was made with (``SSHSIG``, version, key, …)."""
    lines = [line.strip() for line in signature.splitlines() if line and not line.startswith(b"-----")]
    try:
        data = base64.b64decode(b"".join(lines), validate=True)
    except binascii.Error:
        return None
    if not data.startswith(b"SSHSIG"):
        return None
    size = int.from_bytes(data[10:14], "big")
    return data[14 : 14 + size] if len(data) >= 14 + size else None


def _key_blob(key: str) -> bytes | None:
    """Return the bytes of a plain OpenSSH public key; certificates are none."""
    parts = key.split()
    if len(parts) < 2 or not _SSH_TYPE.fullmatch(parts[0]) or "-cert-" in parts[0]:
        return None
    try:
        return base64.b64decode(parts[1], validate=True)
    except (binascii.Error, ValueError):
        return None


# --- OpenPGP


class KeyRing:
    """A GnuPG home that holds nothing but some given keys.

    Args:
        blocks: armored public keys.
    """

    def __init__(self, blocks: Collection[str]) -> None:
        self._program = shutil.which("gpg")
        self._folder = tempfile.TemporaryDirectory(prefix="gitbus-", ignore_cleanup_errors=True)
        self._home = Path(self._folder.name)
        self._owners: dict[str, str] = {}
        self._unread = 0
        for block in blocks if self._program else ():
            self._take_in(block)

    def _take_in(self, block: str) -> None:
        status = self._gpg("--import", given=block.encode()).text
        prints = [rest.split()[1] for word, rest in _STATUS.findall(status) if word == "IMPORT_OK"]
        self._unread += not prints
        for one in prints:
            self._owners.setdefault(one, block)

    def check(self, payload: bytes, signature: bytes) -> Signature:
        """Check a detached signature."""
        if self._program is None:
            return Signature("unasked", detail="gpg is not on this machine")
        file = self._home / "signature"
        file.write_bytes(signature)
        ran = self._gpg("--verify", str(file), "-", given=payload)
        found = judged(ran, self._owners)
        if found.verdict == "unknown" and self._unread:
            return Signature(
                "unasked", None, found.fingerprint, "one of the known keys cannot be read by gpg"
            )
        return found

    def _gpg(self, *arguments: str, given: bytes) -> Ran:
        options = [
            "--batch",
            "--no-tty",
            "--no-auto-key-retrieve",
            "--no-autostart",
            "--trust-model",
            "always",
        ]
        command = [
            self._program or "gpg",
            "--homedir",
            str(self._home),
            *options,
            "--status-fd",
            "1",
            *arguments,
        ]
        return run(command, given=given, env=environment(GNUPGHOME=str(self._home)))

    def close(self) -> None:
        """Delete the keys."""
        self._folder.cleanup()


def judged(ran: Ran, owners: dict[str, str]) -> Signature:
    """Return what gpg's status lines say, with the key that owns the primary fingerprint.

    Exactly one verdict has to stand there: two signatures in one are none.
    """
    found = [(word, rest.split()) for word, rest in _STATUS.findall(ran.out.decode("utf-8", "replace"))]
    verdicts = [(word, rest) for word, rest in found if word in _VERDICTS]
    if ran.code < 0 or not found:
        return Signature("unasked", detail="gpg gave no answer")
    if len(verdicts) != 1:
        return Signature("bad", detail="it holds no signature, or more than one")
    word, rest = verdicts[0]
    primary = next((fields[-1] for name, fields in found if name == "VALIDSIG" and fields), None)
    if word == "ERRSIG":
        return _unchecked(rest)
    key = owners.get(primary or "")
    if word == "GOODSIG" and ran.code == 0 and primary:
        return Signature("good" if key else "unknown", key, primary)
    return Signature(
        "bad", key, primary or next(iter(rest), None), _WHY.get(word, "the signature is not good")
    )


def _unchecked(fields: list[str]) -> Signature:
    """Judge ``ERRSIG keyid algorithm hash class time reason fingerprint``."""
    reason = fields[5] if len(fields) > 5 else ""
    fingerprint = fields[6] if len(fields) > 6 and fields[6] != "-" else next(iter(fields), None)
    if reason == _NO_PUBLIC_KEY:
        return Signature("unknown", fingerprint=fingerprint)
    if reason == _UNSUPPORTED:
        return Signature("unasked", fingerprint=fingerprint, detail="gpg here does not know its algorithm")
    return Signature("bad", fingerprint=fingerprint, detail=_WHY["ERRSIG"])
