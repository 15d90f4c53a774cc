"""Signatures by real keys: who signed, and what is none."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitbus.errors import Refused
from gitbus.hub import Author, Draft, create_hub, verifying
from gitbus.hub.objects import oid_of
from gitbus.hub.run import Git
from gitbus.hub.store import GitStore
from tests.support.hubs import WHEN

ADA = Author("Ada", "ada@acme.example")
_FOLDER = tempfile.TemporaryDirectory(prefix="gitbus-keys-")
SSH_KINDS = [("ed25519", ()), ("rsa", ("-b", "2048")), ("ecdsa", ("-b", "256"))]


def ssh_key(name: str, kind: str = "ed25519", *options: str) -> Path:
    path = Path(_FOLDER.name) / f"{name}-{kind}"
    if path.exists():
        return path
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, *options, "-N", "", "-C", name, "-f", str(path)], check=True
    )
    return path


def public(key: Path) -> str:
    return Path(f"{key}.pub").read_text().strip()


def gpg(home: Path, *arguments: str, given: bytes = b"", now: str | None = None) -> bytes:
    clock = ("--faked-system-time", now) if now else ()
    command = ["gpg", "--homedir", str(home), "--batch", "--no-tty", "--passphrase", "", *clock, *arguments]
    return subprocess.run(command, input=given, check=True, capture_output=True).stdout


@functools.cache
def pgp_home() -> Path:
    """Return a GnuPG home with keys of ada, eve, one that is expired and one that is revoked."""
    home = Path(_FOLDER.name) / "gpg"
    home.mkdir(mode=0o700)
    for name, ends in (("ada", "never"), ("eve", "never"), ("revoked", "never"), ("expired", "seconds=3600")):
        who = f"{name} <{name}@acme.example>"
        gpg(home, "--quick-generate-key", who, "ed25519", "sign", ends, now="20200101T000000!")
    return home


@pytest.fixture(scope="session", autouse=True)
def no_agents() -> Iterator[None]:
    yield
    home = Path(_FOLDER.name) / "gpg"
    if home.exists():
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)


def block(name: str) -> str:
    return gpg(pgp_home(), "--armor", "--export", f"{name}@acme.example").decode()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GitStore]:
    git = create_hub(tmp_path / "h.git", "main")
    made = GitStore(git, git)
    yield made
    made.close()


def unsigned(store: GitStore, message: str = "approve\n") -> bytes:
    tree = store.write_tree(None, {"a": b"1"})
    return store.database.read(store.write_commit(Draft(tree, (), message, ADA, WHEN)))[1]


def with_header(data: bytes, signature: bytes, name: bytes = b"gpgsig") -> bytes:
    head, _, message = data.partition(b"\n\n")
    return head + b"\n" + name + b" " + signature.strip().replace(b"\n", b"\n ") + b"\n\n" + message


def put(store: GitStore, data: bytes) -> str:
    oid = oid_of("commit", data)
    store.database.write(oid, "commit", data)
    return oid


def sign_ssh(data: bytes, key: Path, namespace: str = "git") -> bytes:
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", str(key)]
    return subprocess.run(command, input=data, check=True, capture_output=True).stdout


def sign_pgp(data: bytes, name: str, *options: str, now: str | None = None) -> bytes:
    return gpg(
        pgp_home(), "--armor", "--detach-sign", "--local-user", f"{name}@acme.example", *options,
        given=data, now=now,
    )  # fmt: skip


def use_ssh(git: Git, key: Path) -> None:
    git.text("config", "gpg.format", "ssh")
    git.text("config", "user.signingkey", str(key))


@pytest.mark.parametrize(("kind", "options"), SSH_KINDS)
def test_what_git_signs_with_an_ssh_key_is_good_by_that_key(
    store: GitStore, kind: str, options: tuple
) -> None:
    key, other = ssh_key("ada", kind, *options), ssh_key("eve")
    use_ssh(store.git, key)
    tree = store.write_tree(None, {"a": b"1"})
    oid = store.write_commit(Draft(tree, (), "approve x", ADA, WHEN, sign=True))
    again = store.write_commit(Draft(tree, (), "approve x", ADA, WHEN, sign=True))
    assert (again == oid) or kind == "ecdsa"
    found = store.signature(oid, [public(other), public(key)])
    assert (found.verdict, found.key) == ("good", public(key))
    listed = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{key}.pub"], check=True, capture_output=True, text=True
    )
    assert found.fingerprint == listed.stdout.split()[1]
    assert store.signature(oid, [public(other)]).verdict == "unknown"
    assert store.signature(oid, []).verdict == "unknown"
    commit = store.commit(oid)
    assert commit.signature is not None
    assert (commit.author.raw, commit.message) == (commit.committer.raw, "approve x\n")


def test_an_unsigned_commit_has_none(store: GitStore) -> None:
    assert store.signature(put(store, unsigned(store)), [public(ssh_key("ada"))]).verdict == "none"


def test_a_signature_counts_for_its_own_bytes_alone(store: GitStore) -> None:
    key = ssh_key("ada")
    data = unsigned(store)
    good = with_header(data, sign_ssh(data, key))
    assert store.signature(put(store, good), [public(key)]).verdict == "good"
    for old, new in ((b"approve", b"reprove"), (b"Ada <", b"Eve <"), (b"\n\n", b"\nencoding x\n\n")):
        assert store.signature(put(store, good.replace(old, new, 1)), [public(key)]).verdict == "bad"
    other = with_header(data, sign_ssh(data, key, "file"))
    assert store.signature(put(store, other), [public(key)]).verdict == "bad"


@pytest.mark.parametrize("second", [b"gpgsig", b"gpgsig-sha256", b"gpgsigx"])
def test_two_signature_headers_are_bad(store: GitStore, second: bytes) -> None:
    key = ssh_key("ada")
    data = unsigned(store)
    signature = sign_ssh(data, key)
    twice = with_header(with_header(data, signature), signature, second)
    assert store.signature(put(store, twice), [public(key)]).verdict == "bad"
    alone = with_header(data, signature, second)
    assert store.signature(put(store, alone), [public(key)]).verdict == (
        "good" if second == b"gpgsig" else "bad"
    )


def test_a_header_that_holds_a_signature_inside_is_no_signature(store: GitStore) -> None:
    key = ssh_key("ada")
    data = unsigned(store)
    inside = with_header(data, b"object x\ngpgsig " + sign_ssh(data, key), b"mergetag")
    assert store.signature(put(store, inside), [public(key)]).verdict == "none"


@pytest.mark.parametrize("hidden", [1, 2])
def test_a_signature_that_is_moved_to_hide_a_parent_is_bad(store: GitStore, hidden: int) -> None:
    key = ssh_key("ada")
    tree = store.write_tree(None, {"a": b"1"})
    parents = tuple(store.write_commit(Draft(tree, (), name, ADA, WHEN)) for name in ("one", "two"))
    data = store.database.read(store.write_commit(Draft(tree, parents, "approve", ADA, WHEN)))[1]
    header = with_header(b"\n\n", sign_ssh(data, key)).strip(b"\n") + b"\n"
    at = data.index(b"parent " + parents[2 - hidden].encode())
    moved = put(store, data[:at] + header + data[at:])
    assert store.commit(moved).parents == parents[: 2 - hidden]
    assert (
        store.signature(put(store, with_header(data, sign_ssh(data, key))), [public(key)]).verdict == "good"
    )
    assert store.signature(moved, [public(key)]).verdict == "bad"


def test_a_text_that_is_no_signature(store: GitStore) -> None:
    data = unsigned(store)
    keys = [public(ssh_key("ada"))]
    for text, verdict in (
        (b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----", "bad"),
        (b"-----BEGIN SSH SIGNATURE-----\n!!\n-----END SSH SIGNATURE-----", "bad"),
        (b"-----BEGIN SIGNED MESSAGE-----\nAAAA\n-----END SIGNED MESSAGE-----", "unknown"),
        (b"-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----", "bad"),
    ):
        assert store.signature(put(store, with_header(data, text)), keys).verdict == verdict


def test_a_certificate_is_no_known_key(store: GitStore, tmp_path: Path) -> None:
    ca = ssh_key("ca")
    key = Path(shutil.copy(ssh_key("ada"), tmp_path / "id"))
    shutil.copy(f"{ssh_key('ada')}.pub", tmp_path / "id.pub")
    command = ["ssh-keygen", "-q", "-s", str(ca), "-I", "x", "-n", "signer", str(key) + ".pub"]
    subprocess.run(command, check=True)
    data = unsigned(store)
    certificate = (tmp_path / "id-cert.pub").read_text().strip()
    oid = put(store, with_header(data, sign_ssh(data, tmp_path / "id-cert.pub")))
    keys = [f"cert-authority {public(ca)}", certificate, public(ca)]
    assert store.signature(oid, keys).verdict == "unknown"


def test_what_git_signs_with_openpgp_is_good_by_that_key(
    store: GitStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNUPGHOME", str(pgp_home()))
    store.git.text("config", "user.signingkey", "ada@acme.example")
    tree = store.write_tree(None, {"a": b"1"})
    oid = store.write_commit(Draft(tree, (), "approve x", ADA, WHEN, sign=True))
    monkeypatch.setenv("GNUPGHOME", os.devnull)
    keys = [public(ssh_key("ada")), block("eve"), block("ada")]
    found = store.signature(oid, keys)
    assert (found.verdict, found.key) == ("good", block("ada"))
    assert store.signature(oid, keys[:2]).verdict == "unknown"
    assert store.signature(oid, []).verdict == "unknown"


def test_openpgp_signatures_that_do_not_count(store: GitStore) -> None:
    data = unsigned(store)
    ada, expired = block("ada"), block("expired")
    good = sign_pgp(data, "ada")
    assert store.signature(put(store, with_header(data, good)), [ada]).verdict == "good"
    tampered = with_header(data, good).replace(b"approve", b"reprove")
    assert store.signature(put(store, tampered), [ada]).verdict == "bad"
    ended = sign_pgp(data, "ada", "--default-sig-expire", "1d", now="20260101T000000!")
    old = store.signature(put(store, with_header(data, ended)), [ada])
    assert (old.verdict, old.detail) == ("bad", "the signature is expired")
    by_expired = sign_pgp(data, "expired", now="20200101T001000!")
    found = store.signature(put(store, with_header(data, by_expired)), [expired])
    assert (found.verdict, found.detail) == ("bad", "the key is expired")
    packets = gpg(pgp_home(), "--dearmor", given=good) + gpg(
        pgp_home(), "--dearmor", given=sign_pgp(data, "eve")
    )
    both = gpg(pgp_home(), "--enarmor", given=packets).replace(b"PGP ARMORED FILE", b"PGP SIGNATURE")
    lines = [line for line in both.splitlines() if not line.startswith(b"Comment:")]
    twice = store.signature(put(store, with_header(data, b"\n".join(lines))), [ada, block("eve")])
    assert twice.verdict == "bad"


def test_a_revoked_key_signs_nothing(store: GitStore) -> None:
    home = pgp_home()
    data = unsigned(store)
    oid = put(store, with_header(data, sign_pgp(data, "revoked")))
    assert store.signature(oid, [block("revoked")]).verdict == "good"
    (certificate,) = [
        path for path in (home / "openpgp-revocs.d").iterdir() if b"revoked@acme" in path.read_bytes()
    ]
    revocation = certificate.read_bytes().replace(b"\n:-----BEGIN", b"\n-----BEGIN")
    gpg(home, "--import", given=revocation)
    found = store.signature(oid, [block("revoked")])
    assert (found.verdict, found.detail) == ("bad", "the key is revoked")


def test_a_known_key_that_gpg_cannot_read_makes_it_unasked(store: GitStore) -> None:
    data = unsigned(store)
    oid = put(store, with_header(data, sign_pgp(data, "ada")))
    broken = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"
    assert store.signature(oid, [broken]).verdict == "unasked"
    assert store.signature(oid, [broken, block("ada")]).verdict == "good"


def test_without_the_programs_it_is_unasked_and_asked_again(
    store: GitStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, key = unsigned(store), ssh_key("ada")
    ssh = put(store, with_header(data, sign_ssh(data, key)))
    pgp = put(store, with_header(data, sign_pgp(data, "ada")))
    keys = [public(key), block("ada")]
    with monkeypatch.context() as patch:
        patch.setattr(verifying.shutil, "which", lambda name: None)
        assert store.signature(ssh, keys).verdict == "unasked"
        assert store.signature(pgp, keys[1:]).verdict == "unasked"
    assert store.signature(ssh, keys).verdict == "good"


def test_a_key_that_cannot_be_used_is_refused(
    store: GitStore, git: Callable[..., str], tmp_path: Path
) -> None:
    use_ssh(store.git, tmp_path / "no-such-key")
    tree = store.write_tree(None, {"a": b"1"})
    with pytest.raises(Refused) as caught:
        store.write_commit(Draft(tree, (), "m", ADA, WHEN, sign=True))
    assert caught.value.rule == "cannot-sign"
    assert caught.value.remedy


def test_the_clones_configuration_signs_and_the_hub_holds_the_commit(
    tmp_path: Path, git: Callable[..., str]
) -> None:
    hub = create_hub(tmp_path / "h.git", "main")
    git(tmp_path, "init", "-q", "clone")
    clone = Git(tmp_path / "clone/.git")
    use_ssh(clone, ssh_key("ada"))
    store = GitStore(hub, clone)
    tree = store.write_tree(None, {"a": b"1"})
    parent = store.write_commit(Draft(tree, (), "p", ADA, WHEN))
    oid = store.write_commit(Draft(tree, (parent,), "m", ADA, WHEN, sign=True))
    store.close()
    fresh = GitStore(hub, hub)
    assert fresh.signature(oid, [public(ssh_key("ada"))]).verdict == "good"
    assert git(tmp_path / "clone", "count-objects").startswith("0 objects")
    fresh.close()
