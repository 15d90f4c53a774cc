"""The same proof with OpenPGP keys: one that is known, one that is not, and one that expired."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.busrepo import BusRepo, make_bus

pytestmark = pytest.mark.long


@pytest.fixture
def gpg() -> Iterator[Callable[..., str]]:
    """Run gpg in a home of its own, whose path is short enough for the agent's socket."""
    home = Path(tempfile.mkdtemp(prefix="gpg-"))
    home.chmod(0o700)

    def run(*arguments: str) -> str:
        command = ["gpg", "--homedir", str(home), "--batch", "--passphrase", "", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    run.home = str(home)  # type: ignore[attr-defined]
    yield run
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False, env={**os.environ})
    shutil.rmtree(home, ignore_errors=True)


def merge(bus: BusRepo, gpg: Callable[..., str], who: str) -> None:
    """Merge the item's branch, signed with an OpenPGP key."""
    bus.checkout()
    settings = ("-c", "gpg.format=openpgp", "-c", f"user.signingkey={who}@test")
    branch = "gitbus/approve/a.mail.item"
    home = gpg.home  # type: ignore[attr-defined]
    bus.git(who, *settings, "merge", "-q", "--no-ff", "-S", "--no-edit", branch, GNUPGHOME=home)


def test_openpgp(make_repo: Callable[..., BusRepo], gpg: Callable[..., str]) -> None:
    for who in ("ada", "mallory"):
        gpg("--quick-gen-key", f"{who.title()} <{who}@test>", "ed25519", "sign", "never")
    people = [one.model_dump(mode="json") for one in make_bus().people]
    people[0]["keys"] = [gpg("--armor", "--export", "ada@test")]
    bus = make_repo(people=people)
    bus.put_up()
    before = bus.tip
    merge(bus, gpg, "ada")
    proof = bus.prove()
    assert proof.missing == ()
    assert proof.people == ("ada",)
    bus.point("main", before)
    merge(bus, gpg, "mallory")
    assert bus.refused() == {"unknown-key"}
