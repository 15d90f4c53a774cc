"""Mail addresses, read strictly: what a person reads is where it goes.

Rules: ``local@domain`` or ``Name <local@domain>``; no groups, quoted local parts, address literals
or comments. A domain is kept as its A-labels (IDNA 2008). A label or a local part that mixes
scripts, that imitates Latin letters under a Latin domain, or that holds a character which cannot
be seen is refused; one that is written in a single script of any kind is fine.

Example: ``parse("ada@acme.example").spec == "ada@acme.example"``, while the same with a Cyrillic
``с`` in ``acme`` is refused as ``confusable-address``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from gitbus.errors import Refused

_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]")
_LDH = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ANGLE = re.compile(r"(?P<name>.*?)\s*<(?P<spec>[^<>]*)>", re.DOTALL)
_ENCODED_WORD = re.compile(r"=\?[^?\s]*\?[bq]\?", re.IGNORECASE)
_SPECIALS = frozenset('()<>[]:;@\\,"')

_INVISIBLE = frozenset(["Cf", "Cc", "Cs", "Co", "Cn", "Zl", "Zp"])
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
)
_JOINERS = frozenset("\u200c\u200d")  # a name in Persian or an emoji may need them

# Sets of scripts that one language writes together (UTS 39, "highly restrictive").
_TOGETHER = tuple(
    frozenset(one.split())
    for one in ("LATIN CJK HIRAGANA KATAKANA", "LATIN CJK BOPOMOFO", "LATIN CJK HANGUL")
)
_SCRIPT_OF = {"IDEOGRAPHIC": "CJK", "EXTENDED": "ARABIC"}
_LOOKALIKES = {
    "CYRILLIC": frozenset("асԁеһіјӏорԗԛѕԝхуъьҽпгѵѡ"),
    "GREEK": frozenset("αικνρυωηοτ"),
}
"""Letters that pass for Latin ones, by script; the sets that browsers go by."""


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address: the name shown (or nothing), the local part, and the domain in A-labels."""

    display: str
    local: str
    domain: str

    @property
    def spec(self) -> str:
        """The address alone, as it goes over the wire."""
        return f"{self.local}@{self.domain}"

    @property
    def needs_utf8(self) -> bool:
        """Whether only a server with SMTPUTF8 (RFC 6531) can take it."""
        return not self.local.isascii()


def parse(text: str) -> Address:
    """Read one address.

    Raises:
        Refused: ``control-character``, ``invisible-character``, ``confusable-address`` or ``bad-address``.
    """
    _no_controls(text)
    match = _ANGLE.fullmatch(text.strip(" "))
    display, spec = (_display(match["name"]), match["spec"]) if match else ("", text.strip(" "))
    local, at, domain = spec.rpartition("@")
    if not at or not local or not domain:
        raise _bad(text, "write local@domain, or Name <local@domain>")
    _no_invisible(spec, allowed=frozenset())
    labels = _labels(domain, text)
    latin = labels[-1].isascii()
    for label in labels:
        _one_script(label, text, latin_around=latin)
    _one_script(local, text, latin_around=latin)
    _local_part(local, text)
    address = Address(display, local, ".".join(_a_label(label, text) for label in labels))
    if len(address.domain) > 253 or len(address.spec.encode()) > 254:
        raise _bad(text, "an address has at most 254 octets (RFC 5321)")
    return address


def allowed(address: str | Address, patterns: Iterable[str]) -> bool:
    """Say whether a recipient stands on an allow-list of addresses and ``*@domain``.

    Domains are compared in A-labels, so that case and spelling do not matter; local parts exactly.

    Raises:
        Refused: the address itself is none.
    """
    one = parse(address) if isinstance(address, str) else address
    return any(_matches(one, pattern) for pattern in patterns)


def sender_allowed(address: str | Address, entries: Iterable[str]) -> bool:
    """Say whether a sender is one of a channel's ``from``; an entry's name, where it has one, binds.

    Raises:
        Refused: the address or an entry is none.
    """
    one = parse(address) if isinstance(address, str) else address
    for entry in map(parse, entries):
        if entry.spec == one.spec and one.display in (
            ("", entry.display) if entry.display else (one.display,)
        ):
            return True
    return False


def has_encoded_word(text: str) -> bool:
    """Say whether a mail reader would show something else than what stands here (RFC 2047)."""
    return bool(_ENCODED_WORD.search(text))


def _matches(address: Address, pattern: str) -> bool:
    local, _, domain = pattern.strip().rpartition("@")
    try:
        other = parse(f"postmaster@{domain}" if local == "*" else pattern)
    except Refused:
        return False
    return other.domain == address.domain and (local == "*" or other.local == address.local)


def _bad(text: str, remedy: str) -> Refused:
    return Refused(f"this is no address: {text[:120]!a}", rule="bad-address", remedy=remedy)


def _no_controls(text: str) -> None:
    if any(unicodedata.category(one) == "Cc" for one in text):
        raise Refused(
            f"a control character in an address: {text[:120]!a}",
            rule="control-character",
            remedy="take it out",
        )


def _no_invisible(text: str, allowed: frozenset[str]) -> None:
    for one in text:
        if one not in allowed and (unicodedata.category(one) in _INVISIBLE or one in _BLANK):
            raise Refused(
                f"U+{ord(one):04X} cannot be seen: {text[:120]!a}",
                rule="invisible-character",
                remedy="type the address anew",
            )


def _display(text: str) -> str:
    _no_invisible(text, allowed=_JOINERS | frozenset(map(chr, range(0xFE00, 0xFE10))))
    if has_encoded_word(text):
        raise _bad(text, "write the name as it is to be read; it is encoded when it is sent")
    quoted = _QUOTED.fullmatch(text.strip())
    if quoted:
        return re.sub(r"\\(.)", r"\1", quoted[1])
    if _SPECIALS & set(text):
        raise _bad(text, 'put the name into double quotes: "Acme, Inc." <news@acme.example>')
    return " ".join(text.split())


def _local_part(local: str, text: str) -> None:
    dots = local.startswith(".") or local.endswith(".") or ".." in local
    if dots or len(local.encode()) > 64 or not all(_atom(one) for one in local if one != "."):
        raise _bad(text, "a local part has 1 to 64 octets of letters, digits and !#$%&'*+/=?^_`{|}~-.")
    if unicodedata.normalize("NFKC", local) != local:
        raise _confusable(text, "it holds letters in another form")


def _atom(one: str) -> bool:
    return bool(_ATOM.fullmatch(one)) if one.isascii() else unicodedata.category(one)[0] in "LMN"


def _labels(domain: str, text: str) -> list[str]:
    """Return the labels of a domain as people read them, in lower case."""
    labels = domain.lower().split(".")
    return [_u_label(label, text) if label.startswith("xn--") else label for label in labels]


def _u_label(label: str, text: str) -> str:
    import idna  # its tables cost milliseconds, and few addresses need them

    try:
        unicode = idna.ulabel(label)
        if idna.alabel(unicode).decode("ascii") == label:
            return unicode
    except idna.IDNAError:
        pass
    raise _bad(text, f"{label} is no label of IDNA 2008")


def _a_label(label: str, text: str) -> str:
    if label.isascii():
        if not _LDH.fullmatch(label):
            raise _bad(text, "a domain has labels of 1 to 63 letters, digits and -")
        return label
    import idna  # as above

    try:
        return idna.alabel(label).decode("ascii")
    except idna.IDNAError:
        raise _bad(text, f"{label!a} is no label of IDNA 2008") from None


def _script(one: str) -> str | None:
    if one.isascii():
        return "LATIN" if one.isalpha() else None
    if unicodedata.category(one)[0] not in "LN":
        return None
    first = re.split("[ -]", unicodedata.name(one, "UNNAMED"))[0]
    return _SCRIPT_OF.get(first, first)


def _one_script(part: str, text: str, *, latin_around: bool) -> None:
    scripts = {script for one in part if (script := _script(one))}
    if len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER):
        raise _confusable(text, "it mixes " + " and ".join(sorted(scripts)))
    for script in scripts if latin_around else ():
        letters = {one for one in part if _script(one)}
        if letters <= _LOOKALIKES.get(script, frozenset()):
            raise _confusable(text, f"its {script} letters look like Latin ones")


def _confusable(text: str, why: str) -> Refused:
    return Refused(
        f"this address can be taken for another: {text[:120]!a}; {why}",
        rule="confusable-address",
        remedy="write the address that is meant, in one script",
    )
