"""Whatever others wrote, GitHub shows it and does nothing else with it; read by GitHub's own parser."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gitbus.forge.github.markdown import (
    WIDTH,
    address,
    bare,
    block,
    code,
    cut,
    is_cut,
    link,
    marked,
    marker,
    one_line,
    visible,
)
from tests.forge.pages import read_page, references

HOSTILE = (
    "@ada", "@acme/team", "#1", "GH-1", "acme/bus#1", "fixes #1", "deadbeefdeadbeef", "\n", "\n\n", "\r\n", "\t",
    "`", "``", "```", "```mermaid\n", "~~~", "    ", "- [x] ", "- ", "1. ", "> ", "# ", "===\n", "---\n", "| a | b |\n",
    "|---|---|\n", "<img src=x>", "![a](https://evil.example/x.png)", "[a](https://evil.example)", "[a]: https://e.example\n",
    "https://evil.example/", "www.evil.example", "ada@acme.example", "<https://evil.example>", "<b>", "</details>",
    "</code></pre>", "<!--", "-->", "<!-- gitbus: sent a.mail.item 1 1 -->", "&lt;", "&#64;ada", "\\", "\\`", "*", "_",
    "**a**", "$`x`$", "$$", ":tada:", "/merge", "Gitbus-Item: a.mail.item", "[skip ci]", "\u200b", "\u202e", "\u2028",
    "\x00", "\x1b[31m", "\ufeff", "\ud800", "e" + "\u0301" * 9, "🎉", " ", "a",
)  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=5)), max_size=12).map("".join)

SPANS = {"p", "code", "em"}
BLOCKS = {"pre", "code"}


def unwrapped(shown: str, text: str) -> bool:
    """Say whether a block's text is the given one, but for line breaks in long lines."""
    pieces = re.sub(r"\n", "", shown)
    return pieces == visible(text).replace("\n", "")


# --- code spans


@given(texts)
@example("`")
@example("a ` b `` c")
@example(" ` ")
@example("\\`")
@example("a" * 400)
@example("\t")
def test_a_span_shows_the_text_and_nothing_else(text: str) -> None:
    page = read_page(f"Before {code(text)} after")
    assert page.names <= SPANS
    if one_line(text, 300).strip(" "):
        assert page.codes == [one_line(text, 300)]
        assert page.prose.strip() == "Before  after"


@given(texts, texts)
def test_spans_of_a_list_stay_in_their_entries(one: str, other: str) -> None:
    page = read_page(f"- **FACT** {code(one)} ← {code(other)}\n- {code(other)}\n\nEnd")
    assert page.names <= {"ul", "li", "strong", "p", "code", "em"}
    assert [tag for tag, _ in page.tags].count("li") == 2
    assert references(page.prose) == []


def test_what_is_empty_is_said_to_be() -> None:
    assert code("") == "*(empty)*"
    assert code("   ") == "*(3 spaces)*"


# --- blocks


@given(texts)
@example("```\n# out\n```\n")
@example("~~~~\n````\n")
@example("x" * 1000)
@example("a " * 400)
@example("\n\n\na\n\n")
def test_a_block_shows_the_text_and_nothing_else(text: str) -> None:
    page = read_page(f"Before\n\n{block(text)}\n\nAfter")
    assert page.names <= {"p", *BLOCKS}
    assert len(page.codes) == 1
    assert unwrapped(page.codes[0], text)
    assert page.prose.split() == ["Before", "After"]


@given(texts)
def test_a_block_after_a_list_is_whole(text: str) -> None:
    page = read_page(f"- one\n\n{block(text)}\n\nAfter")
    assert page.names <= {"ul", "li", "p", *BLOCKS}
    assert unwrapped(page.codes[0], text)
    assert page.prose.split() == ["one", "After"]


@given(texts)
def test_no_line_of_a_block_begins_a_line_of_the_page(text: str) -> None:
    assert all(line.startswith("   ") or not line for line in block(text).split("\n"))


def test_a_text_of_short_lines_comes_back_as_it_is() -> None:
    text = "Hello,\n\n  indented\n\ttabbed\nend"
    assert read_page(block(text + "\n")).codes == [text + "\n"]


def test_lines_are_wrapped_at_spaces() -> None:
    shown = read_page(block("word " * 60)).codes[0].splitlines()
    assert max(map(len, shown)) <= WIDTH
    assert all(line == "word " * (len(line) // 5) for line in shown)


def test_what_is_cut_is_known_to_be() -> None:
    assert not is_cut("a" * 10, 10)
    assert is_cut("a" * 11, 10)
    assert is_cut("\u200b" * 9, 10)
    assert read_page(block("a" * 11, most=10)).codes == ["a" * 9 + "…\n"]
    assert cut("ab", 1) == "…"


# --- what cannot be seen


@pytest.mark.parametrize(
    "char",
    [
        "\u200b",
        "\u200d",
        "\u202e",
        "\u2066",
        "\ufeff",
        "\x00",
        "\x1b",
        "\x85",
        "\u2028",
        "\u3164",
        "\U000e0041",
    ],
)
def test_what_cannot_be_seen_is_shown_by_its_number(char: str) -> None:
    assert visible(f"a{char}b") == f"a⟨U+{ord(char):04X}⟩b"


def test_what_is_written_in_any_script_stays() -> None:
    text = "Grüße, 你好, שלום, สวัสดี, é, e\u0301, 🎉, ❤\ufe0f"
    assert visible(text) == text


def test_marks_are_not_piled_up() -> None:
    assert visible("e" + "\u0301" * 6) == "e" + "\u0301" * 4 + "⟨U+0301⟩" * 2


# --- titles

BACK = str.maketrans(
    {"＠": "@", "＃": "#", "：": ":", "․": ".", "\u2011": "-", "ˋ": "`", "\u00a0": " ", "\u202f": ""}
)


@given(texts)
@example("fixes #1, see https://github.com/acme/bus/issues/1")
@example("gh-1 GH-22 [skip ci] [ci skip] [no ci] [skip actions] skip-checks: true")
@example("deadbeef" * 5)
@example("20261130")
def test_a_title_refers_to_nothing(text: str) -> None:
    title = bare(text)
    assert len(title) <= 256
    assert references(title) == []
    assert "\n" not in title
    assert visible(title) == title
    assert not re.search(r"(?i)(skip|no) ci|ci skip|skip actions|actions skip|skip-checks|@|#|://", title)


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), max_size=60))
@example("Release 1.0 fixes #12 for @you")
def test_a_title_can_still_be_read(text: str) -> None:
    assert bare(text).translate(BACK) == " ".join(text.split())


# --- links


@pytest.mark.parametrize(
    "text",
    [
        "https://acme.example",
        "https://a.example:8443/x/y.html?b=1&copy=2#z",
        "https://xn--80ak6aa92e.example/",
    ],
)
def test_an_address_that_is_what_it_looks_like_is_a_link_to_itself(text: str) -> None:
    page = read_page(address(text, "https://github.com"))
    assert page.links == [(text, text)]
    assert page.codes == [text]


@given(texts)
@pytest.mark.parametrize(
    "start",
    [
        "http://a.example/",
        "https://u:p@a.example/",
        "https://a.example/(x)",
        "https://ѕ.example",
        "javascript:alert(1)//",
    ],
)
def test_any_other_is_no_link(start: str, text: str) -> None:
    page = read_page(address(start + text, "https://github.com"))
    assert page.links == []
    assert page.names <= SPANS


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/acme/other/issues/1",
        "https://gist.github.com/x",
        "https://git.acme.example/acme/bus/pull/3",
    ],
)
def test_no_link_goes_to_another_page_of_a_github(text: str) -> None:
    assert address(text, "https://git.acme.example") == f"`{text}`"


@given(texts)
def test_a_link_of_ours_goes_where_it_says(text: str) -> None:
    page = read_page(link(text, "https://github.com/acme/bus/blob/x/a?b=1&c"))
    assert [href for href, _ in page.links] == ["https://github.com/acme/bus/blob/x/a?b=1&c"]


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "https://a b", "https://a)", "https://a\n", "//a", "https://<"]
)
def test_nothing_else_is_linked_to(target: str) -> None:
    with pytest.raises(ValueError, match="no address"):
        link("a", target)


# --- markers


def test_a_marker_is_found_in_the_last_line_only() -> None:
    line = marker("sent", "a--b.mail.item", 1, 2)
    assert marked(f"Sent.\r\n\r\n{line}\r\n") == "sent a--b.mail.item 1 2"
    assert marked(f"{line}\n\nand more") is None
    assert marked(f"> {line}") is None
    assert marked("") is None


@pytest.mark.parametrize("subject", ["a.mail.item -->", "A", "x\n", "<b>", "é"])
def test_a_marker_is_made_of_ids(subject: str) -> None:
    with pytest.raises(ValueError, match="no id"):
        marker("sent", subject)


def test_a_marker_is_not_seen() -> None:
    page = read_page(f"Sent.\n\n{marker('sent', 'a--b.mail.item', 1, 2)}")
    assert page.prose.strip() == "Sent."
    assert page.comments == [" gitbus: sent a--b.mail.item 1 2 "]
