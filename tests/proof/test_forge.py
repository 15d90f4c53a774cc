"""The seam to a forge: a bus with ``proof: github`` takes signatures, asks the forge, or says that it could not."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from gitbus import paths
from gitbus.history import History, Oid
from gitbus.proof.standing import Standing, Word
from gitbus.proof.values import Verified, missing
from tests.support.busrepo import ITEM, BusRepo, changed_bus

GITHUB = "GitHub <noreply@github.com>"


class Told:
    """A forge that says what it was told to, of one commit."""

    def __init__(self, commit: Oid, word: Word) -> None:
        self.commit = commit
        self.told = word
        self.asked: list[tuple[str, ...]] = []

    def agrees(self, history: History, tip: Oid) -> None:
        return None

    def word(self, history: History, commit: Oid, standing: Standing, about: Collection[str]) -> Word:
        self.asked.append(tuple(about))
        return self.told if commit == self.commit else Word((), (), (missing("not-named"),))


@pytest.fixture
def github(make_repo: Callable[..., BusRepo]) -> BusRepo:
    """A bus with an item that GitHub merged."""
    bus = make_repo(approval={"proof": "github"})
    bus.put_up()
    flip = bus.at(f"gitbus/approve/{ITEM}")
    stamp = f"{int(bus.now.timestamp())} +0000"
    tree = bus.store.commit(flip).tree
    bus.commit(
        {},
        f"Merge pull request #1 from acme/gitbus/approve/{ITEM}",
        parents=[bus.tip, flip],
        tree=tree,
        author=f"{GITHUB} {stamp}",
        committer=f"{GITHUB} {stamp}",
    )
    return bus


MERGED = Word(("ada",), (Verified("merged by ada", "recorded", {"pull_request": 1}),))


def test_without_a_forge_it_could_not_be_asked(github: BusRepo) -> None:
    proof = github.prove()
    assert [one.rule for one in proof.missing] == ["unasked"]
    assert proof.unasked
    assert not proof.disproved


def test_with_a_forge_its_word_is_recorded(github: BusRepo) -> None:
    forge = Told(github.tip, MERGED)
    proof = github.prove(forge=forge)
    assert proof.proved
    assert proof.people == ("ada",)
    assert "recorded" in {one.assurance for one in proof.verified}
    assert forge.asked == [(f"approve/{ITEM}",)]


def test_what_the_forge_misses_is_missing(github: BusRepo) -> None:
    word = Word((), (), (missing("unasked", unasked=True),))
    assert github.prove(forge=Told(github.tip, word)).unasked


def test_merged_by_no_approver(github: BusRepo) -> None:
    assert github.refused(forge=Told(github.tip, Word(("oscar",)))) == {"quorum"}


@pytest.mark.parametrize(("four_eyes", "people", "rules"), [
    (False, ("ada",), {"review-quorum"}), (False, ("ada", "rita"), set()), (True, ("ada", "ada"), {"review-quorum"}),
])  # fmt: skip
def test_reviews_of_the_pull_request_count(
    make_repo: Callable[..., BusRepo], four_eyes: bool, people: tuple[str, ...], rules: set[str]
) -> None:
    bus = make_repo(approval={"proof": "github"}, review={"four_eyes": four_eyes})
    bus.put_up(state="in_review")
    bus.merge("ada", sign=False)
    assert bus.refused(forge=Told(bus.tip, Word(people))) == rules


def test_a_signature_counts_there_too(make_repo: Callable[..., BusRepo]) -> None:
    bus = make_repo(approval={"proof": "github"})
    bus.put_up()
    bus.merge("ada")
    assert bus.prove().proved


def test_the_conductors_own_merge_is_disproved(make_repo: Callable[..., BusRepo]) -> None:
    bus = make_repo(approval={"proof": "github"})
    bus.put_up()
    bus.merge("ada", sign=False)
    assert bus.prove().disproved


def test_a_forge_has_no_say_where_only_signatures_count(bus: BusRepo) -> None:
    bus.put_up()
    bus.merge("ada", sign=False)
    forge = Told(bus.tip, MERGED)
    assert bus.refused(forge=forge) == {"unsigned"}
    assert forge.asked == []


def test_bus_merged_by_the_forge_alone(make_repo: Callable[..., BusRepo]) -> None:
    from gitbus.proof.bus import effective

    bus = make_repo(approval={"proof": "github"})
    more = changed_bus(bus.bus, sending={"hold": "1m"})
    side = bus.write_bus(more, "oscar", key=None, on="gitbus/decide/bus", parents=[bus.tip])
    merge = bus.commit({paths.BUS: more}, "Merge pull request #1", parents=[bus.tip, side])
    assert effective(bus.fresh(), merge, bus.root).pending
    assert effective(bus.fresh(), merge, bus.root, forge=Told(merge, MERGED)).commit == merge
    riding = bus.commit(
        {paths.BUS: bus.bus, "docs/a.md": "x\n"}, "Merge pull request #2", parents=[merge, side]
    )
    found = effective(bus.fresh(), riding, bus.root, forge=Told(riding, MERGED))
    assert found.commit == bus.root
