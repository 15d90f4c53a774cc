"""Weighing what a forge says of a pull request: one honest merge, and everything that is not one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitbus.history import Commit, Ident
from gitbus.proof.merged import Account, PullFacts, ReviewFact, facts_in, weigh
from gitbus.proof.standing import Standing
from gitbus.records import Bus

ADA = Account(id=1, login="ada-l", type="User")
BOB = Account(id=2, login="bob", type="User")
RITA = Account(id=3, login="rita", type="User")
STRANGER = Account(id=99, login="ada-l", type="User")
APP = Account(id=1, login="ada-l", type="Bot")
OIDS = {name: letter * 40 for name, letter in (("merge", "a"), ("first", "b"), ("head", "c"), ("other", "d"))}
WHEN = datetime(2026, 12, 1, 12, tzinfo=UTC)
ABOUT = frozenset({"approve/a.mail.item"})


def person(name: str, number: int, *roles: str) -> dict[str, Any]:
    return {
        "id": name,
        "email": f"{name}@test",
        "roles": list(roles),
        "github": {"login": name, "id": number},
    }


PEOPLE = [
    person("ada", 1, "approver", "reviewer"),
    person("bob", 2, "approver"),
    person("rita", 3, "reviewer"),
]


def bus(people: list[dict[str, Any]] = PEOPLE) -> Bus:
    return Bus.model_validate({"name": "acme", "people": people, "approval": {"proof": "github"}})


STANDING = Standing(bus(), bus())


def commit(*parents: str) -> Commit:
    raw = "GitHub <noreply@github.com> 1764590400 +0000"
    by = Ident("GitHub", "noreply@github.com", WHEN, raw)
    return Commit(OIDS["merge"], OIDS["other"], parents, by, by, "Merge pull request #7\n")


MERGE = commit(OIDS["first"], OIDS["head"])


def facts(**changed: Any) -> PullFacts:
    known: dict[str, Any] = {
        "repository": 500,
        "number": 7,
        "base": "main",
        "head": "gitbus/approve/a.mail.item",
        "head_commit": OIDS["head"],
        "head_repository": 500,
        "author": Account(id=41, login="gitbus[bot]", type="Bot"),
        "merged_at": WHEN,
        "merged_by": ADA,
        "merge_commit": OIDS["merge"],
        "made_by_forge": True,
    }
    return PullFacts.model_validate(known | changed)


def review(by: Account, verdict: str, minutes: int = -5, **more: Any) -> ReviewFact:
    known = {
        "id": abs(hash((by.id, verdict, minutes))) % 10_000,
        "by": by,
        "verdict": verdict,
        "commit": OIDS["head"],
        "at": WHEN + timedelta(minutes=minutes),
    }
    return ReviewFact.model_validate(known | more)


def rules(**changed: Any) -> set[str]:
    return {one.rule for one in weigh(facts(**changed), MERGE, STANDING, ABOUT, "main").missing}


def test_an_honest_merge() -> None:
    word = weigh(facts(), MERGE, STANDING, ABOUT, "main")
    assert (word.people, word.missing) == (("ada",), ())
    assert [one.assurance for one in word.verified] == ["recorded"]


def test_its_evidence_is_weighed_the_same_again() -> None:
    made = facts(reviews=(review(BOB, "approved"),))
    word = weigh(made, MERGE, STANDING, ABOUT, "main")
    assert facts_in(word.verified[0].evidence) == made


def test_a_squash_by_github_counts() -> None:
    assert weigh(facts(), commit(OIDS["first"]), STANDING, ABOUT, "main").people == ("ada",)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"merged_at": None}, "no-pull"),
        ({"merge_commit": OIDS["other"]}, "no-pull"),
        ({"merged_by": None}, "no-pull"),
        ({"base": "release"}, "wrong-branch"),
        ({"head_repository": 501}, "fork"),
        ({"head_repository": None}, "fork"),
        ({"head": "gitbus/approve/b.mail.item"}, "not-named"),
        ({"head": "approve/a.mail.item"}, "not-named"),
        ({"head": "gitbus/decide/a.mail.item"}, "not-named"),
        ({"made_by_forge": False}, "indirect-merge"),
        ({"head_commit": OIDS["other"]}, "indirect-merge"),
        ({"automatic": "auto-merge"}, "automatic-merge"),
        ({"automatic": "merge queue"}, "automatic-merge"),
        ({"merged_by": APP}, "merged-by-app"),
        ({"merged_by": STRANGER}, "unknown-account"),
        ({"merged_by": RITA}, "wrong-role"),
        ({"reviews": (review(RITA, "changes_requested"),)}, "standing-no"),
        ({"reviews": (review(RITA, "changes_requested", 5),)}, "standing-no"),
        ({"reviews": (review(BOB, "approved", -9), review(BOB, "changes_requested", -8))}, "standing-no"),
        (
            {"reviews": (review(BOB, "dismissed", dismissed_verdict="changes_requested", dismissed_by=APP),)},
            "standing-no",
        ),
        (
            {
                "reviews": (
                    review(BOB, "dismissed", dismissed_verdict="changes_requested", dismissed_by=RITA),
                )
            },
            "standing-no",
        ),
        ({"reviews": (review(BOB, "dismissed"),)}, "standing-no"),
    ],
)
def test_refused(changed: dict[str, Any], rule: str) -> None:
    assert rules(**changed) == {rule}
    assert weigh(facts(**changed), MERGE, STANDING, ABOUT, "main").people == ()


@pytest.mark.parametrize(
    "reviews",
    [
        (review(RITA, "changes_requested", -9), review(RITA, "approved", -8)),
        (review(STRANGER, "changes_requested"),),
        (review(BOB, "dismissed", dismissed_verdict="changes_requested", dismissed_by=ADA),),
        (review(BOB, "dismissed", dismissed_verdict="changes_requested", dismissed_by=BOB),),
        (review(BOB, "dismissed", dismissed_verdict="approved", dismissed_by=APP),),
    ],
)
def test_what_does_not_stand_against_it(reviews: tuple[ReviewFact, ...]) -> None:
    assert rules(reviews=reviews) == set()


@pytest.mark.parametrize(
    ("before", "now", "rule"),
    [
        (PEOPLE, PEOPLE[1:], "removed-since"),
        (PEOPLE[1:], PEOPLE, "added-since"),
        (PEOPLE, [person("eve", 1, "approver"), *PEOPLE[1:]], "removed-since"),
        (PEOPLE, [person("ada", 1, "reviewer"), *PEOPLE[1:]], "removed-since"),
    ],
)
def test_rights_hold_before_and_now(before: list[Any], now: list[Any], rule: str) -> None:
    word = weigh(facts(), MERGE, Standing(bus(before), bus(now)), ABOUT, "main")
    assert {one.rule for one in word.missing} == {rule}


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (review(RITA, "approved"), True),
        (review(RITA, "approved", 5), False),
        (review(RITA, "approved", commit=OIDS["other"]), False),
        (review(RITA, "approved", commit=None), False),
        (review(STRANGER, "approved"), False),
        (review(Account(id=3, login="rita", type="Bot"), "approved"), False),
    ],
)
def test_which_reviews_count(one: ReviewFact, counts: bool) -> None:
    people = weigh(facts(reviews=(one,)), MERGE, STANDING, ABOUT, "main").people
    assert people == (("ada", "rita") if counts else ("ada",))


def test_the_mergers_own_review_is_told_apart_from_his_merge() -> None:
    word = weigh(facts(reviews=(review(ADA, "approved"),)), MERGE, STANDING, ABOUT, "main")
    assert word.people == ("ada", "ada")


VERDICTS = st.sampled_from(["approved", "changes_requested", "dismissed"])
SAID = st.lists(
    st.builds(
        review,
        st.sampled_from([ADA, BOB, RITA, STRANGER]),
        VERDICTS,
        st.integers(-20, 20),
        id=st.integers(1, 50),
        dismissed_by=st.sampled_from([None, ADA, RITA, APP]),
        dismissed_verdict=st.sampled_from([None, "approved", "changes_requested"]),
    ),
    max_size=6,
)


@given(SAID)
def test_no_review_takes_a_no_away_but_its_own_authors_later_word(said: list[ReviewFact]) -> None:
    last = {
        one.by.id: one for one in sorted(said, key=lambda one: (one.at, one.id)) if one.by.id != STRANGER.id
    }
    against = any(one.verdict == "changes_requested" for one in last.values())
    word = weigh(facts(reviews=tuple(said)), MERGE, STANDING, ABOUT, "main")
    assert not (against and word.people)
    assert not (word.people and word.missing)
    assert set(word.people) <= {"ada", "bob", "rita"}
