"""What every forge has to keep, whether people merge with git alone or in GitHub's pages: one suite for both."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import pytest

from gitbus import paths
from gitbus.bus import Bus
from gitbus.records import Item
from tests.github.office import REPO, Office, hands, make_office
from tests.github.server import serve
from tests.journeys.test_item_together import BATCH
from tests.support.world import ITEM, MAIL_GOAL, World, function_worker, make_world, step_all

HELLO = "Hello,\nit is out.\n"


class Host(Protocol):
    """A bus on some git host, and the people who act on it there."""

    def put_up(self, goal: bytes = MAIL_GOAL, confidence: float = 0.9) -> None: ...
    def work(self, text: str = HELLO) -> None: ...
    def conduct(self) -> None: ...
    def bus(self) -> Bus: ...
    def approve(self, branch: str = ITEM) -> None: ...
    def review(self) -> None: ...
    def reject(self, reason: str, branch: str = ITEM) -> None: ...
    def ask_changes(self, note: str) -> None: ...
    def edit(self, text: str) -> None: ...
    def turn_on(self) -> None: ...
    def send(self) -> list[str]: ...
    def later(self, by: timedelta) -> None: ...
    def messages(self) -> list[bytes]: ...
    def refs(self) -> dict[str, str]: ...


class Plain:
    """A host of git alone: people use git and the command line's functions."""

    def __init__(self, world: World) -> None:
        self.world = world

    def put_up(self, goal: bytes = MAIL_GOAL, confidence: float = 0.9) -> None:
        with self.bus() as bus:
            bus.add_goal(goal)
        self._work(confidence, HELLO)

    def work(self, text: str = HELLO) -> None:
        self._work(0.9, text)

    def _work(self, confidence: float, text: str) -> None:
        with self.bus() as bus:
            worker = function_worker(bus, "laptop", hands(confidence, text))
            step_all(bus, [worker])
            worker.close()

    def conduct(self) -> None:
        with self.bus() as bus:
            bus.conduct()

    def bus(self) -> Bus:
        return self.world.open()

    def approve(self, branch: str = ITEM) -> None:
        self.world.git("fetch", "-q", "origin")
        self.world.git("reset", "-q", "--hard", "origin/main")
        self.world.git("merge", "-q", "--no-ff", "--no-edit", "-S", f"origin/gitbus/approve/{branch}")
        self.world.git("push", "-q", "origin", "HEAD:main")

    def review(self) -> None:
        with self.bus() as bus:
            bus.review(ITEM, "ok")

    def reject(self, reason: str, branch: str = ITEM) -> None:
        with self.bus() as bus:
            for name, part in bus.board().items.items():
                if part.item and branch in (name, part.item.together):
                    bus.reject(name, reason)

    def ask_changes(self, note: str) -> None:
        with self.bus() as bus:
            bus.redo(ITEM, note)

    def edit(self, text: str) -> None:
        self.world.git("fetch", "-q", "origin")
        self.world.git("checkout", "-q", "-B", "edit", f"origin/gitbus/approve/{ITEM}")
        (self.world.clone / "outbox" / ITEM / "body.txt").write_text(text, "utf-8")
        self.world.git("commit", "-q", "-a", "-m", "Say it better")
        self.world.git("push", "-q", "origin", f"edit:gitbus/approve/{ITEM}")
        self.world.git("checkout", "-q", "main")

    def turn_on(self) -> None:
        with self.bus() as bus:
            bus.set_config("sending.enabled", True)

    def send(self) -> list[str]:
        with self.bus() as bus, bus.sender({}) as sender:
            return [one.outcome for one in sender.round()]

    def later(self, by: timedelta) -> None:
        self.world.clock.now += by

    def messages(self) -> list[bytes]:
        return self.world.messages()

    def refs(self) -> dict[str, str]:
        with self.bus() as bus:
            return dict(bus.refs())


class OnGitHub:
    """GitHub: people use the browser."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.ada = office.github.browser("ada")

    def put_up(self, goal: bytes = MAIL_GOAL, confidence: float = 0.9) -> None:
        self.office.item(goal, confidence)

    def work(self, text: str = HELLO) -> None:
        self.office.work(text=text)

    def conduct(self) -> None:
        self.office.conduct()

    def bus(self) -> Bus:
        return self.office.bus("ada")

    def _number(self, branch: str = ITEM) -> int:
        return self.office.number(f"gitbus/approve/{branch}")

    def approve(self, branch: str = ITEM) -> None:
        self.ada.merge(REPO, self._number(branch))

    def review(self) -> None:
        self.ada.review(REPO, self._number())

    def reject(self, reason: str, branch: str = ITEM) -> None:
        self.ada.comment(REPO, self._number(branch), reason)
        self.ada.close(REPO, self._number(branch))

    def ask_changes(self, note: str) -> None:
        self.ada.review(REPO, self._number(), "REQUEST_CHANGES", note)

    def edit(self, text: str) -> None:
        self.ada.edit(REPO, f"gitbus/approve/{ITEM}", {f"outbox/{ITEM}/body.txt": text})

    def turn_on(self) -> None:
        self.office.sending()

    def send(self) -> list[str]:
        return [one.outcome for one in self.office.send()]

    def later(self, by: timedelta) -> None:
        self.office.clock.now += by

    def messages(self) -> list[bytes]:
        return self.office.messages()

    def refs(self) -> dict[str, str]:
        return dict(self.office.refs())


@pytest.fixture(params=["plain", pytest.param("github", marks=pytest.mark.long)])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    if request.param == "plain":
        yield Plain(make_world(tmp_path))
        return
    with serve(tmp_path / "github") as github:
        yield OnGitHub(make_office(github, tmp_path / "office"))


def item(host: Host, name: str = ITEM) -> Item:
    with host.bus() as bus:
        found = bus.board().items[name].item
    assert found is not None
    return found


def is_up(host: Host, name: str = ITEM) -> bool:
    return paths.APPROVE + name in host.refs()


def sound(host: Host) -> bool:
    with host.bus() as bus:
        return bus.audit().findings == ()


def test_a_merge_approves_and_is_sent_once(host: Host) -> None:
    host.put_up()
    assert is_up(host)
    host.approve()
    assert host.send() == ["refused"]  # the flag is off
    host.turn_on()
    assert host.send() == ["sent"]
    assert host.send() == []
    host.conduct()
    assert item(host).state == "sent"
    assert not is_up(host)
    assert len(host.messages()) == 1
    assert sound(host)


def test_rejected_with_a_reason(host: Host) -> None:
    host.put_up()
    host.reject("too long")
    host.conduct()
    assert item(host).state == "rejected"
    assert (item(host).reason or "").endswith("too long")
    assert not is_up(host)
    assert sound(host)


def test_changes_asked_for(host: Host) -> None:
    host.put_up()
    host.turn_on()
    host.ask_changes("mention the parser")
    host.conduct()
    with host.bus() as bus:
        feedback = bus.whole_board().goals["release"].tasks["mail"].feedback
    assert [(one.by, one.revision, one.text) for one in feedback] == [("ada", 1, "mention the parser")]
    host.work("Hello,\nthe parser is faster.\n")
    assert (item(host).revision, item(host).state) == (2, "awaiting_approval")
    host.approve()
    assert host.send() == ["sent"]
    assert b"the parser is faster" in host.messages()[0]
    assert sound(host)


def test_an_edit_on_the_branch(host: Host) -> None:
    host.put_up()
    host.turn_on()
    host.edit("Hello,\nit is out now.\n")
    host.conduct()
    assert (item(host).revision, item(host).state) == (2, "awaiting_approval")
    host.approve()
    assert host.send() == ["sent"]
    assert b"it is out now" in host.messages()[0]
    assert sound(host)


def test_an_edit_that_was_merged_before_it_was_taken_in(host: Host) -> None:
    host.put_up()
    host.turn_on()
    host.edit("Hello,\nit is out now.\n")
    host.approve()
    assert host.send() in (["refused"], [])
    host.conduct()
    assert (item(host).revision, item(host).state) == (2, "awaiting_approval")
    host.approve()
    assert host.send() == ["sent"]
    assert b"it is out now" in host.messages()[0]
    assert len(host.messages()) == 1


def test_taken_back_in_time(host: Host) -> None:
    host.put_up()
    host.turn_on()
    host.approve()
    with host.bus() as bus:
        bus.withdraw(ITEM, "the date moved")
    host.conduct()
    assert host.send() == []
    assert item(host).state == "withdrawn"
    assert not is_up(host)
    assert sound(host)


def test_expired_and_put_up_again(host: Host) -> None:
    host.put_up()
    host.turn_on()
    host.later(timedelta(days=8))
    host.conduct()
    assert item(host).state == "expired"
    assert not is_up(host)
    with host.bus() as bus:
        bus.retry_item(ITEM)
    host.conduct()
    assert is_up(host)
    host.approve()
    assert host.send() == ["sent"]
    assert sound(host)


def test_under_the_threshold_a_review_comes_first(host: Host) -> None:
    host.put_up(confidence=0.4)
    host.turn_on()
    assert item(host).state == "in_review"
    host.approve()
    assert host.send() == ["refused"]
    host.conduct()
    assert item(host).state == "in_review"
    host.review()
    host.approve()
    assert host.send() == ["sent"]
    assert sound(host)


def test_a_batch_is_one_branch_and_one_merge(host: Host) -> None:
    host.put_up(BATCH)
    host.turn_on()
    names = [f"post.mail-{one}.hello" for one in "abc"]
    assert is_up(host, "post.mail")
    assert not any(is_up(host, name) for name in names)
    with host.bus() as bus:
        bus.reject(names[1], "not him")
    host.conduct()
    host.approve("post.mail")
    assert host.send() == ["sent", "sent"]
    assert [item(host, name).state for name in names] == ["sent", "rejected", "sent"]
    assert sound(host)


def test_a_conductor_that_finds_everything_in_place_changes_nothing(host: Host) -> None:
    host.put_up()
    before = host.refs()
    host.conduct()
    host.conduct()
    assert host.refs() == before


def test_a_branch_that_was_deleted_comes_back(host: Host) -> None:
    host.put_up()
    ref = paths.APPROVE + ITEM
    flip = host.refs()[ref]
    with host.bus() as bus:
        from gitbus.hub import RefMove

        assert bus.hub.move([RefMove(ref, bus.refs()[ref], None)]).moved(ref)
    host.conduct()
    assert host.refs()[ref] == flip
    assert item(host).state == "awaiting_approval"
