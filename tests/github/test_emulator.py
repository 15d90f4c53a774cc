"""gitbus's GitHub forge against a GitHub that nobody here wrote, where a user's gitbus looks for it.

The simulator has no git: its commits have ids of its own, which :class:`Known` takes for those of real
commits. What it does not have (events, the pull requests of a commit) is what a proof needs; so nothing
is proved here, and that is tested too.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from github import Auth, Github, GithubException

from gitbus.board import Board, ItemBoard
from gitbus.errors import Refused
from gitbus.forge.base import Acting, Said, View
from gitbus.forge.github.client import Client, ForgeRefused
from gitbus.forge.github.forge import GitHub
from gitbus.forge.github.place import place_of
from gitbus.forge.opening import open_forge
from gitbus.history import Oid
from gitbus.hub import Draft, create_hub
from gitbus.hub.store import GitStore
from gitbus.proof.standing import Standing
from gitbus.records import Bus
from tests.forge.pages import ITEM, NOW, make_board, make_bus, make_item
from tests.github import emulator as simulator
from tests.github.emulator import PROTECTED, REPO, Absent, Emulator
from tests.github.validating import Validating
from tests.github.validating import hook as validating_hook
from tests.support.hubs import ADA, WHEN, first_commit

if TYPE_CHECKING:
    from github.Repository import Repository

pytestmark = pytest.mark.long

BLOB = "0" * 40
"""The file of the Bus, which nothing here reads."""
URL = f"https://github.com/{REPO}.git"
PEOPLE = ("conductor", "ada", "rita")
NAME = f"gitbus/approve/{ITEM}"
REF = f"refs/heads/{NAME}"
TEXT = b"Release 1.0 is out.\n"
FOLDER = f"outbox/{ITEM}"
FLIP = {
    f"{FOLDER}/approval.yaml": b"kind: Approval\n",
    f"{FOLDER}/body.txt": TEXT,
    f"{FOLDER}/item.yaml": b"state: approved\n",
}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Run the simulator for this module; each test makes a world of its own in it."""
    try:
        binary = simulator.program()
    except Absent as absent:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(absent))
    with simulator.running(binary, tmp_path_factory.mktemp("myworld")) as made:
        yield made


@pytest.fixture
def tokens(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Make ``acme/bus`` with a branch to approve, and lead this process there; return people's tokens."""
    files = {path: data.decode() for path, data in FLIP.items()}
    made = emulator.world(PEOPLE, branches={NAME: {"files": files}}, protected=PROTECTED)
    for name, value in emulator.environment().items():
        monkeypatch.setenv(name, value)
        monkeypatch.delenv(name.lower(), raising=False)
    simulator.hook(monkeypatch)
    return made


@pytest.fixture(autouse=True)
def validated(monkeypatch: pytest.MonkeyPatch) -> Validating:
    """Check what gitbus asks; what the simulator answers is its own affair."""
    made = Validating(answers=False)
    validating_hook(monkeypatch, made)
    return made


# --- the simulator by itself


@pytest.fixture
def library(tokens: dict[str, str]) -> Callable[[str], Repository]:
    """Return a function that gives the repository as PyGithub shows it to somebody."""

    def look(login: str) -> Repository:
        quick: dict[str, Any] = {
            "retry": None,
            "seconds_between_requests": None,
            "seconds_between_writes": None,
        }
        return Github(auth=Auth.Token(tokens[login]), api_version="2022-11-28", **quick).get_repo(REPO)

    return look


class TestSimulator:
    def test_it_is_reached_where_a_user_reaches_github(self, library: Callable[[str], Repository]) -> None:
        ada = library("ada")
        assert (ada.full_name, ada.default_branch, ada.private) == (REPO, "main", True)
        assert ada.url.startswith("https://api.github.com/")
        assert {one.name: one.protected for one in ada.get_branches()} == {"main": True, NAME: False}

    def test_a_protected_branch_takes_no_push(self, library: Callable[[str], Repository]) -> None:
        with pytest.raises(GithubException, match="through a pull request") as refused:
            library("ada").create_file("x.txt", "x", "x\n", branch="main")
        assert refused.value.status == 409

    def test_a_pull_request_from_its_opening_to_its_merge(self, library: Callable[[str], Repository]) -> None:
        pull = library("conductor").create_pull(base="main", head=NAME, title="An item", body="")
        with pytest.raises(GithubException, match="your own pull request"):
            pull.create_review(event="APPROVE", body="mine")
        with pytest.raises(GithubException, match="approving review") as refused:
            library("ada").get_pull(pull.number).merge()
        assert refused.value.status == 405
        library("rita").get_pull(pull.number).create_review(event="APPROVE", body="fine")
        done = library("ada").get_pull(pull.number).merge()
        now = library("conductor").get_pull(pull.number)
        assert (now.merged, now.merged_by.login, now.merge_commit_sha) == (True, "ada", done.sha)
        assert [(one.user.login, one.state) for one in now.get_reviews()] == [("rita", "APPROVED")]


# --- gitbus against it


class Known:
    """A store that knows the simulator's commits by real ones."""

    def __init__(self, store: GitStore) -> None:
        self.store = store
        self.ids: dict[Oid, Oid] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)

        def call(*arguments: Any, **more: Any) -> Any:
            return method(
                *(self.ids.get(one, one) if isinstance(one, str) else one for one in arguments), **more
            )

        return call


@dataclass
class Side:
    """One bus on the simulator: what is on its hub, and everybody's forge."""

    tokens: dict[str, str]
    bus: Bus
    store: Known
    board: Board
    refs: dict[str, Oid]
    made: list[GitHub] = field(default_factory=list)

    def forge(self, login: str) -> GitHub:
        """Return the forge as gitbus opens it for somebody, in a process that begins now."""
        environment = {"GH_TOKEN": self.tokens[login], "GITBUS_NO_PACE": "1"}
        found = open_forge(URL, self.bus, "main", self.store, environment)
        assert isinstance(found, GitHub)
        self.made.append(found)
        return found

    def acting(self, login: str) -> Acting:
        """Return what somebody does there."""
        return self.forge(login).acting

    def tick(self) -> tuple[list[Said], bool, list[str]]:
        """Let the conductor hear and keep once; return what it heard, did and complains of."""
        forge = self.forge("conductor")
        said = forge.hear(self.board, self.refs)
        up = {ITEM: (ITEM,)} if REF in self.refs else {}
        view = View(board=self.board, bus=BLOB, refs=self.refs, branches=up, now=NOW)
        return list(said), forge.keep(view), forge.troubles

    def stands(self, **change: Any) -> None:
        """Let the item stand otherwise on the bus."""
        item = make_item(text=TEXT.decode(), **change)
        entry = self.store.entry(self.refs[REF], f"{FOLDER}/body.txt")
        self.board = replace(self.board, items={ITEM: ItemBoard(ITEM, item, {"body.txt": entry})})

    def pull(self, number: int = 1) -> Any:
        """Return a pull request as the API tells it."""
        return self.made[0].client.get(f"/repos/{REPO}/pulls/{number}")


@pytest.fixture
def side(tokens: dict[str, str], tmp_path: Path) -> Iterator[Side]:
    """Make a bus whose one item waits for its approval."""
    git = create_hub(tmp_path / "hub.git", "main")
    root = first_commit(git)
    store = GitStore(git, git)
    flip = _commit(store, root, FLIP)
    accounts = {login: _told(token, "/user") for login, token in tokens.items()}
    roles = {"ada": ["approver", "reviewer"], "rita": ["reviewer"]}
    people = [
        {
            "id": who,
            "email": f"{who}@acme.example",
            "roles": some,
            "github": {"login": who, "id": accounts[who]["id"]},
        }
        for who, some in roles.items()
    ]
    bus = make_bus(people=people, notify=[{"on": ["stuck"], "issue": True}])
    tip = _told(tokens["ada"], f"/repos/{REPO}/git/ref/heads/{NAME}")["object"]["sha"]
    known = Known(store)
    known.ids[tip] = flip
    board = replace(make_board(bus=bus), commit=root)
    made = Side(tokens, bus, known, board, {"refs/heads/main": root, REF: tip})
    made.stands()
    yield made
    for one in made.made:
        one.close()
    store.close()


def _told(token: str, path: str) -> Any:
    place = place_of(URL, {})
    assert place is not None
    with closing(Client(place, token, pace=False)) as client:
        return client.get(path)


def _commit(store: GitStore, parent: Oid, files: dict[str, bytes], *more: Oid) -> Oid:
    tree = store.write_tree(store.commit(parent).tree, dict(files))
    made = store.write_commit(Draft(tree, (parent, *more), "change", ADA, WHEN))
    store.flush()
    return made


class TestForge:
    def test_the_api_is_githubs_own_through_the_proxy(self, side: Side) -> None:
        assert side.forge("ada").client.place.api == "https://api.github.com"

    def test_what_waits_is_shown_once_and_found_again(self, side: Side) -> None:
        assert side.tick() == ([], True, [])
        pull = side.pull()
        assert (pull["head"]["ref"], pull["base"]["ref"], pull["state"]) == (NAME, "main", "open")
        assert "Release 1.0" in pull["title"]
        assert TEXT.decode().strip() in pull["body"]
        assert {one["name"] for one in pull["labels"]} == {"gitbus", "gitbus-open"}
        assert side.tick() == ([], False, [])
        side.stands(send_at=NOW + timedelta(days=1))
        assert side.tick() == ([], True, [])
        assert side.pull()["body"] != pull["body"]
        assert side.tick() == ([], False, [])

    def test_its_author_cannot_review_it(self, side: Side) -> None:
        side.tick()
        assert not side.acting("conductor").review(REF, side.refs[REF], "ok", "mine")
        assert side.acting("rita").review(REF, side.refs[REF], "ok", "fine")

    def test_changes_that_are_asked_for_are_heard(self, side: Side) -> None:
        side.tick()
        side.acting("rita").review(REF, side.refs[REF], "no", "Name the price.")
        said, _, troubles = side.tick()
        assert (said, troubles) == ([Said("redo", ITEM, "rita", "Name the price.")], [])
        side.acting("rita").review(REF, side.refs[REF], "ok", "fine")
        assert side.tick()[0] == []

    def test_a_merge_at_the_head_that_was_seen(self, side: Side) -> None:
        side.tick()
        with pytest.raises(Refused, match="approving review") as refused:
            side.acting("ada").merge(REF, side.refs[REF])
        assert refused.value.rule == "not-mergeable"
        side.acting("rita").review(REF, side.refs[REF], "ok", "fine")
        merge = side.acting("ada").merge(REF, side.refs[REF])
        pull = side.pull()
        assert (pull["merged"], pull["merged_by"]["login"], pull["merge_commit_sha"]) == (True, "ada", merge)

    def test_a_head_that_moved_is_not_merged(self, side: Side) -> None:
        side.tick()
        content = base64.b64encode(b"more\n").decode()
        more = {"message": "more", "content": content, "branch": NAME}
        side.forge("rita").client.send("PUT", f"/repos/{REPO}/contents/more.txt", more)
        side.acting("rita").review(REF, side.pull()["head"]["sha"], "ok", "fine")
        with pytest.raises(Refused) as refused:
            side.acting("ada").merge(REF, side.refs[REF])
        assert refused.value.rule == "head-moved"
        assert side.pull()["state"] == "open"

    def test_the_branch_is_not_written_directly(self, side: Side) -> None:
        body = {"message": "x", "content": "eA==", "branch": "main"}
        with pytest.raises(ForgeRefused, match="through a pull request") as refused:
            side.forge("ada").client.send("PUT", f"/repos/{REPO}/contents/x.txt", body)
        assert refused.value.rule == "forge-conflict"

    def test_what_is_over_is_closed_and_told(self, side: Side) -> None:
        side.tick()
        side.stands(state="expired")
        del side.refs[REF]
        assert side.tick() == ([], True, [])
        assert side.pull()["state"] == "closed"
        side.tick()
        (comment,) = side.made[0].client.get(f"/repos/{REPO}/issues/1/comments")
        assert "expired" in comment["body"].lower()
        assert {one["name"] for one in side.pull()["labels"]} == {"gitbus"}
        assert side.tick() == ([], False, [])

    def test_what_it_cannot_say_is_a_trouble_and_stops_nothing(self, side: Side) -> None:
        side.tick()
        side.acting("ada").close(REF, side.refs[REF], "Too early.")
        (comment,) = side.made[0].client.get(f"/repos/{REPO}/issues/1/comments")
        assert (comment["body"], comment["user"]["login"]) == ("Too early.", "ada")
        said, done, troubles = side.tick()
        assert (said, done) == ([], False)
        assert [one for one in troubles if "/issues/1/events: Not Found" in one] == troubles != []

    def test_what_is_stuck_becomes_an_issue_until_it_is_not(self, side: Side) -> None:
        side.stands(state="stuck")
        del side.refs[REF]
        assert side.tick() == ([], True, [])
        issue = side.made[0].client.get(f"/repos/{REPO}/issues/1")
        assert (issue["state"], "stuck" in issue["title"]) == ("open", True)
        assert side.tick() == ([], False, [])
        side.board = replace(side.board, items={})
        assert side.tick() == ([], True, [])
        assert side.made[0].client.get(f"/repos/{REPO}/issues/1")["state"] == "closed"

    def test_a_merge_that_it_cannot_vouch_for_proves_nothing(self, side: Side) -> None:
        side.tick()
        side.acting("rita").review(REF, side.refs[REF], "ok", "fine")
        merge = side.acting("ada").merge(REF, side.refs[REF])
        flip = side.store.ids[side.refs[REF]]
        side.store.ids[merge] = _commit(side.store.store, side.board.commit, FLIP, flip)
        proof = side.forge("ada").proof
        assert proof.agrees(side.store, merge) is None
        standing = Standing(side.bus, side.bus)
        word = proof.word(side.store, merge, standing, ())
        assert word.people == ()
        assert [(one.rule, one.kind) for one in word.missing] == [("unasked", "unasked")]
