r"""Text that came from others, so that GitHub shows it and does nothing else with it.

Rules: GitHub looks for mentions, references, closing keywords, addresses, mathematics and emoji in
everything but code. So what others wrote stands in code spans (:func:`code`) or fenced blocks
(:func:`block`), never in prose, and a backslash is no help (a ``\@`` is a mention all the same). What
cannot be seen (controls, zero-width and bidirectional characters) is shown by its number. A title is
no Markdown, and GitHub copies it into the merge commit: there :func:`bare` swaps the characters that
start something for others that look alike.

Only GitHub's own repository pages and https addresses that are shown whole become links.

Example: ``code("Hi @ada, fixes #1") == "`Hi @ada, fixes #1`"``, which renders as text and tells nobody.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from urllib.parse import quote, urlsplit

WIDTH = 96
"""Characters of a line in a block, past which it is wrapped: GitHub scrolls sideways instead."""

MARKS = 4
"""Combining characters in a row that are drawn; more are piled over what stands around them."""

_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and signs that draw nothing, beside those that a category tells."""

_ODD = re.compile(r"[^ -~\n\t]")

_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    """Return a text in which every character that cannot be seen is written as ``⟨U+200B⟩``.

    Line feeds and tabs stay. Lone surrogates are shown too.
    """
    if not _ODD.search(text):
        return text
    shown: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        hidden = marks > MARKS or _draws_nothing(char, category)
        shown.append(f"⟨U+{ord(char):04X}⟩" if hidden and char not in "\n\t" else char)
    return "".join(shown)


def _draws_nothing(char: str, category: str) -> bool:
    selector = "\ufe00" <= char <= "\ufe0e" or "\U000e0100" <= char <= "\U000e01ef"
    return category in _UNSEEN_CATEGORIES or char in _UNSEEN or selector


def cut(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, the last one ``…`` where something is missing."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def one_line(text: str, limit: int) -> str:
    """Return a text on one line: line breaks as ``⏎``, tabs as spaces, all else visible."""
    line = cut(text, limit).replace("\r\n", "\n").replace("\n", "⏎").replace("\t", " ")
    return cut(visible(line), limit)


def code(text: str, limit: int = 300) -> str:
    """Return a code span (GFM 6.3) that shows a text on one line, and nothing but it.

    Args:
        text: any text.
        limit: characters that are shown at the most.
    """
    shown = one_line(text, limit)
    if not shown.strip(" "):
        return "*(empty)*" if not shown else f"*({len(shown)} spaces)*"
    ticks = "`" * (_longest_run(shown, "`") + 1)
    pad = " " if shown[0] in " `" or shown[-1] in " `" else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def block(text: str, info: str = "text", most: int = 4_000) -> str:
    """Return a fenced code block (GFM 4.5) that shows a text line by line; long lines are wrapped.

    Every line is indented by three spaces, which belong to the fence: no line of the text begins a
    line of the page, where commands for bots, trailers and front matter stand.

    Args:
        text: any text.
        info: what the block is, for colours: ``text`` or ``diff``.
        most: characters that are shown at the most (see :func:`is_cut`).
    """
    shown = cut(visible(cut(text, most)), most).removesuffix("\n")
    lines = [piece for line in shown.split("\n") for piece in _wrapped(line)]
    fence = "`" * max(3, _longest_run(shown, "`") + 1)
    inner = "\n".join(f"   {line}" if line else "" for line in lines)
    return f"   {fence}{info}\n{inner}\n   {fence}"


def is_cut(text: str, most: int) -> bool:
    """Say whether a block of at most so many characters shows less than the whole text."""
    return len(text) > most or len(visible(text)) > most


def _wrapped(line: str) -> list[str]:
    """Break a line after a space where there is one; the pieces together are the line."""
    pieces = []
    while len(line) > WIDTH:
        at = line.rfind(" ", WIDTH // 2, WIDTH) + 1 or WIDTH
        pieces.append(line[:at])
        line = line[at:]
    return [*pieces, line]


def _longest_run(text: str, char: str) -> int:
    return max(map(len, re.findall(f"{re.escape(char)}+", text)), default=0)


# --- titles: no Markdown, but searched for references all the same


def _grouped(match: re.Match[str]) -> str:
    return "\u202f".join(match[0][at : at + 6] for at in range(0, len(match[0]), 6))


_LOOKALIKES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"@"), "＠"),  # mentions, owner/repo@sha, mail addresses
    (re.compile(r"#"), "＃"),  # references, with closing keywords before them too
    (re.compile(r"://"), "：//"),  # addresses, of issues above all
    (re.compile(r"(?i)(gh)-(?=[0-9])"), "\\1\u2011"),
    (re.compile(r"(?i)(www)\.(?=\S)"), "\\1․"),
    (re.compile(r"`"), "ˋ"),
    (re.compile(r"(?i)\b(skip|no|ci|actions) (?=(?:ci|skip|actions)\b)"), "\\1\u00a0"),  # [skip ci]
    (re.compile(r"(?i)\b(skip)-(?=checks\b)"), "\\1\u2011"),
    (re.compile(r"(?i)(?<![0-9a-z])[0-9a-f]{7,}(?![0-9a-z])"), _grouped),  # a commit's hash
)


def bare(text: str, limit: int = 256) -> str:
    """Return a text for a title or a commit's subject: one line that refers to nothing and starts nothing.

    GitHub's titles hold at most 256 characters.
    """
    shown = " ".join(one_line(text, 4 * limit).split())
    for pattern, instead in _LOOKALIKES:
        shown = pattern.sub(instead, shown)
    return cut(shown, limit)


# --- links

_HTTPS = re.compile(
    r"https://(?P<host>[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?)(?::[0-9]{1,5})?(?:[/?#][A-Za-z0-9._~/?#&=%+,:;@!$*-]*)?"
)
"""An address whose every character is what it looks like (RFC 3986 without brackets and quotes)."""

SHOWN_ADDRESS = 200


def link(shown: str, address: str) -> str:
    """Return a link to an address that gitbus made, shown as a text in code.

    Raises:
        ValueError: the address holds a character that ends a link's destination.
    """
    if not re.fullmatch(r"https?://[!#-'*-;=?-Z_a-z~]+", address):
        raise ValueError(f"{address!r} is no address to link to")
    return f"[{code(shown)}]({address.replace('&', '&amp;')})"


def address(text: str, own: str) -> str:
    """Return an address from outside in code, as a link to exactly what is shown where that is safe.

    Pages of GitHub itself are no links: a link to an issue or a pull request leaves a trace there.

    Args:
        text: what is said to be an address.
        own: the address of the GitHub that shows the page.
    """
    match = _HTTPS.fullmatch(text)
    if match is None or len(text) > SHOWN_ADDRESS or _is_github(match["host"], own):
        return code(text)
    return link(text, text)


def _is_github(host: str, own: str) -> bool:
    return any(
        host == one or host.endswith(f".{one}")
        for one in ("github.com", urlsplit(own).hostname or "github.com")
    )


def quoted_path(path: str) -> str:
    """Return a path as a part of an address."""
    return quote(path, safe="/")


# --- the hidden line by which a comment is found again

_MARKER = re.compile(r"<!-- gitbus: ([a-z0-9._/ -]{1,300}) -->")


def marker(word: str, subject: str, *numbers: int) -> str:
    """Return the hidden last line of a comment or an issue, made of ids and numbers only.

    Example: ``marker("sent", "a.mail.item", 1, 2) == "<!-- gitbus: sent a.mail.item 1 2 -->"``.

    Raises:
        ValueError: the subject is no id.
    """
    line = f"<!-- gitbus: {' '.join([word, subject, *map(str, numbers)])} -->"
    if not _MARKER.fullmatch(line):
        raise ValueError(f"{subject!r} is no id")
    return line


def marked(text: str) -> str | None:
    """Return what the hidden last line of a comment or issue says; None where there is none.

    Only the last line counts: what others wrote never stands there.
    """
    lines = text.rstrip().splitlines()
    match = _MARKER.fullmatch(lines[-1]) if lines else None
    return match[1] if match else None
