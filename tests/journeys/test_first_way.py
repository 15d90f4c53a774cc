"""The whole way, from a goal to an attested send, as a person goes it."""

from __future__ import annotations

import email
import email.policy
from pathlib import Path

from gitbus.auditing import audit_bus
from tests.support.world import ITEM, make_world, waiting_item


def test_from_goal_to_receipt(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with waiting_item(world) as bus:
        assert bus.board().items[ITEM].state == "awaiting_approval"
        bus.approve([ITEM])
        bus.conduct()
        assert bus.board().items[ITEM].state == "approved"
        with bus.sender({}) as sender:
            refused = sender.round()
            assert [(one.outcome, "sending-off" in (one.reason or "")) for one in refused] == [
                ("refused", True)
            ]
            assert world.messages() == []
            bus.set_config("sending.enabled", True)
            assert [one.outcome for one in sender.round()] == ["sent"]
            assert sender.round() == []
        part = bus.board().items[ITEM]
        assert part.state == "sent"
        assert part.receipts[1].approval.people == ("ada",)
        assert part.receipts[1].lease == bus.hub.store.line(bus.refs()[bus.hub.main])[1]
        tip = bus.refs()[bus.hub.main]
        audited = audit_bus(bus.hub.store, tip, bus.root, now=world.clock())
        assert (audited.findings, audited.sent, audited.proved) == ((), 1, 1)
    [message] = world.messages()
    parsed = email.message_from_bytes(message, policy=email.policy.default)
    assert parsed["To"] == "list@partners.example"
    assert parsed["Subject"] == "Release 1.0"
    assert parsed.get_content().replace("\r\n", "\n") == "Hello,\nit is out.\n"
    world.git("--git-dir", str(world.hub), "fsck", "--strict")


def test_approved_by_plain_git(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with waiting_item(world) as bus:
        world.git("fetch", "--quiet", "origin")
        world.git("reset", "--quiet", "--hard", "origin/main")
        world.git("merge", "--quiet", "--no-ff", "-S", "--no-edit", f"origin/gitbus/approve/{ITEM}")
        world.git("push", "--quiet", "origin", "HEAD:main")
        bus.set_config("sending.enabled", True)
        with bus.sender({}) as sender:
            assert [one.outcome for one in sender.round()] == ["sent"]
    assert len(world.messages()) == 1


def test_unsigned_merge_is_no_approval(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with waiting_item(world) as bus:
        bus.set_config("sending.enabled", True)
        world.git("fetch", "--quiet", "origin")
        world.git("reset", "--quiet", "--hard", "origin/main")
        world.git(
            "merge", "--quiet", "--no-ff", "--no-gpg-sign", "--no-edit", f"origin/gitbus/approve/{ITEM}"
        )
        world.git("push", "--quiet", "origin", "HEAD:main")
        with bus.sender({}) as sender:
            [sent] = sender.round()
        assert (sent.outcome, (sent.reason or "").split(":")[0]) == ("refused", "unsigned")
        bus.conduct()
        part = bus.board().items[ITEM]
        assert part.state == "awaiting_approval"
        assert part.approval is None
        bus.approve([ITEM])
        with bus.sender({}) as sender:
            assert [one.outcome for one in sender.round()] == ["sent"]
    assert len(world.messages()) == 1
