"""Addresses: what is read is what was written, and what could be taken for another is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gitbus.addresses import _BLANK, Address, allowed, parse, sender_allowed
from gitbus.errors import Refused

ATOM = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789!#$%&'*+/=?^_`{|}~-"
locals_ = st.lists(st.text(ATOM, min_size=1, max_size=10), min_size=1, max_size=4).map(".".join)
domains = st.lists(
    st.from_regex(r"[a-wyz0-9]([a-z0-9]{0,8}[a-z0-9])?", fullmatch=True), min_size=1, max_size=4
)
names = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=30)


@given(locals_, domains.map(".".join), names)
def test_a_quoted_name_comes_back(local: str, domain: str, name: str) -> None:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    assume("=?" not in name and not _BLANK & set(name))
    address = parse(f'"{quoted}" <{local}@{domain.upper()}>')
    assert address == Address(name, local, domain)
    assert parse(address.spec) == Address("", local, domain)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ada@acme.example", ("", "ada@acme.example")),
        ("Ada Lovelace <ada@ACME.example>", ("Ada Lovelace", "ada@acme.example")),
        ("  J. Doe   <j@x.example> ", ("J. Doe", "j@x.example")),
        ('"Acme, Inc." <news@acme.example>', ("Acme, Inc.", "news@acme.example")),
        ("Ada+tag@acme.example", ("", "Ada+tag@acme.example")),
        ("root@localhost", ("", "root@localhost")),
        ("post@bücher.example", ("", "post@xn--bcher-kva.example")),
        ("post@BÜCHER.example", ("", "post@xn--bcher-kva.example")),
        ("post@xn--bcher-kva.example", ("", "post@xn--bcher-kva.example")),
        ("a@straße.example", ("", "a@xn--strae-oqa.example")),
        ("почта@пример.рф", ("", "почта@xn--e1afmkfd.xn--p1ai")),
        ("post@пример.example", ("", "post@xn--e1afmkfd.example")),
        ("用户@例子.广告", ("", "用户@xn--fsqu00a.xn--4rr70v")),
        ("post@日本語ドメイン.example", ("", "post@xn--eckwd4c7c5976acvb2w6i.example")),
        ("ünïcode@acme.example", ("", "ünïcode@acme.example")),
        ("Ада <ada@acme.example>", ("Ада", "ada@acme.example")),
        ("👩‍💻 Ada <ada@acme.example>", ("👩‍💻 Ada", "ada@acme.example")),
    ],
)
def test_good_ones(text: str, expected: tuple[str, str]) -> None:
    address = parse(text)
    assert (address.display, address.spec) == expected
    assert address.domain.isascii()
    assert address.needs_utf8 == (not address.local.isascii())


@pytest.mark.parametrize(
    "text",
    [
        "ada@асme.example",
        "аda@acme.example",
        "ada@acmе.example",
        "ada@асе.example",  # all Cyrillic, and every letter passes for a Latin one
        "сору@acme.example",
        "ada@xn--me-7kcj.example",
        "ada@xn--80ak6aa92e.com",
        "ada@acme.exаmple",
        "ada@αcme.example",
        "ａda@acme.example",
        "ﬁ@acme.example",
    ],
)
def test_confusable_ones(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(text)
    assert caught.value.rule in ("confusable-address", "bad-address")
    assert text.isascii() or caught.value.rule == "confusable-address"
    assert str(caught.value).isascii()


HIDDEN = (
    "\u200b \u200d \u200c \u2060 \ufeff \u00ad \u202e \u2066 \u061c \u3164 "
    "\u115f \u034f \ufe0f \u2800 \u2028 \ue000 \U000e0041 \u180e"
)


@pytest.mark.parametrize("hidden", HIDDEN.split(" "))
@pytest.mark.parametrize("where", ["a{}da@acme.example", "ada@ac{}me.example", "ada{}@acme.example"])
def test_what_cannot_be_seen(where: str, hidden: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(where.format(hidden))
    assert caught.value.rule == "invisible-character"
    assert f"U+{ord(hidden):04X}" in caught.value.message


@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\u200b", "\u00ad"])
def test_a_name_that_turns_the_line_around(hidden: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(f"Ada{hidden} <ada@acme.example>")
    assert caught.value.rule == "invisible-character"


@pytest.mark.parametrize(
    "text",
    ["a\r\nBcc: x@y.example", "a@b.example\n", "a\0@b.example", "\tA <a@b.example>", "a\x85@b.example"],
)
def test_controls(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(text)
    assert caught.value.rule == "control-character"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ada",
        "@acme.example",
        "ada@",
        "ada@acme.example, eve@x.example",
        "ada@acme.example eve@x.example",
        "Friends: ada@acme.example;",
        "Friends: <ada@acme.example>",
        "Acme, Inc. <a@b.example>",
        "<a@b.example> <c@d.example>",
        "a@b.example <c@d.example>",
        "ada@@acme.example",
        "ada@[127.0.0.1]",
        '"ada l"@acme.example',
        "ada (note)@acme.example",
        ".ada@acme.example",
        "ada.@acme.example",
        "a..da@acme.example",
        "ada@acme..example",
        "ada@.example",
        "ada@acme.example.",
        "ada@-acme.example",
        "ada@ac_me.example",
        "ada@acme.example>",
        "<ada@acme.example",
        "ada@xn--.example",
        "ada@xn--a.example",
        "ada@xn--zzzzzzzzzz99999.example",
        "ada@♥.example",
        "😀@acme.example",
        "a" * 65 + "@acme.example",
        "ada@" + "a" * 64 + ".example",
        "ada@" + ".".join(["abcdefgh"] * 30),
        "=?utf-8?q?Eve?= <ada@acme.example>",
    ],
)
def test_bad_ones(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(text)
    assert caught.value.rule == "bad-address"
    assert caught.value.remedy


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(Refused):
        address = parse(text)
        assert parse(address.spec).spec == address.spec
        assert not set("\r\n<>,; ") & set(address.spec)


@pytest.mark.parametrize(
    ("address", "patterns", "expected"),
    [
        ("ada@acme.example", ["*@acme.example"], True),
        ("ada@ACME.example", ["*@Acme.Example"], True),
        ("Ada <ada@acme.example>", ["ada@acme.example"], True),
        ("ada@acme.example", ["Ada <ada@acme.example>"], True),
        ("Ada@acme.example", ["ada@acme.example"], False),
        ("ada@sub.acme.example", ["*@acme.example"], False),
        ("ada@notacme.example", ["*@acme.example"], False),
        ("ada@acme.example.evil.example", ["*@acme.example"], False),
        ("post@bücher.example", ["*@xn--bcher-kva.example"], True),
        ("post@xn--bcher-kva.example", ["*@BÜCHER.example"], True),
        ("ada@acme.example", [], False),
        ("ada@acme.example", ["*", "*@*", "ada@*", "@acme.example", "acme.example", "nonsense <"], False),
        ("a*@acme.example", ["a*@acme.example"], True),
        ("ab@acme.example", ["a*@acme.example"], False),
    ],
)
def test_allow_lists(address: str, patterns: list[str], expected: bool) -> None:
    assert allowed(address, patterns) is expected
    assert allowed(parse(address), patterns) is expected


def test_an_allow_list_is_not_asked_about_what_is_no_address() -> None:
    with pytest.raises(Refused):
        allowed("ada@асme.example", ["*@acme.example"])


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("Acme News <news@acme.example>", True),
        ("news@acme.example", True),
        ("The Boss <news@acme.example>", False),
        ("Anybody <any@acme.example>", True),
        ("eve@acme.example", False),
    ],
)
def test_senders(address: str, expected: bool) -> None:
    assert sender_allowed(address, ["Acme News <news@acme.example>", "any@acme.example"]) is expected
