"""Suspicious reading: any YAML 1.2 or JSON that a stranger may write, and nothing beyond it.

What is refused, by rule: ``too-large``, ``not-utf8``, ``byte-order-mark``, ``control-character``,
``conflict-markers``, ``directive``, ``syntax``, ``empty``, ``not-a-mapping``, ``many-documents``,
``alias``, ``tag``, ``too-deep``, ``key-not-text``, ``duplicate-key``, ``non-finite``,
``number-too-long``, ``too-many-parts``.

What gitbus wrote itself is read by a small fast parser, whose result is believed only if writing
it again gives the very same text; so nothing about that parser has to be trusted.

Example: ``load(b"a: no", path="x.yaml").data == {"a": "no"}``.
"""

from __future__ import annotations

from typing import Any

from gitbus.codec import canonical, jsontext
from gitbus.codec.emitting import emit
from gitbus.codec.nodes import TOO_MANY, Document, Source, check_text, compose
from gitbus.errors import Invalid

LIMIT = 1 << 20
"""The bytes that a record has at the most, unless ``bus.yaml`` says otherwise."""


class Loaded:
    """What was read: plain data, and where each part of it stands.

    Args:
        data: the mapping that was read.
        text: the text it was read from.
        path: the file, for errors.
        document: the text's tree; it is made when a place is asked for, if it is not there.
    """

    def __init__(self, data: Any, text: str, path: str, document: Document | None = None) -> None:
        self.data = data
        self.text = text
        self.path = path
        self._document = document
        self._placeless = False

    @property
    def document(self) -> Document:
        """The tree of the text."""
        if self._document is None:
            self._document = compose(self.text, self.path)
        return self._document

    def place(self, loc: tuple[str | int, ...], *, key: bool = False) -> tuple[int, int]:
        """Return line and column, from 1, of the part at ``loc`` or of the nearest around it.

        Args:
            loc: the way to it, as pydantic gives it.
            key: ask for its key's place, not its value's.
        """
        if self._placeless:
            return 1, 1
        try:
            return self.document.key_place(loc) if key else self.document.place(loc)
        except Invalid as error:
            if error.rule != TOO_MANY:
                raise
            self._placeless = True  # a canonical text with more parts than are worth looking through
            return 1, 1


def load(text: bytes, *, path: str = "", limit: int = LIMIT) -> Loaded:
    """Read one YAML or JSON document from bytes that nobody vouches for.

    Args:
        text: the bytes.
        path: the file they come from, for the error.
        limit: how many bytes at the most.

    Raises:
        Invalid: with the rule, the place and what to do.
    """
    whole = decoded(text, path, limit)
    return checked(guessed(whole), whole, path)


def guessed(text: str) -> dict[str, Any] | None:
    """Return what a text seems to say if it is in the canonical form, which is yet to be seen."""
    try:
        return canonical.parse(text)
    except canonical.NotCanonical:
        return None


def checked(guess: dict[str, Any] | None, text: str, path: str) -> Loaded:
    """Return what a text says: what was guessed where that is written so, or else what a slow reading gives.

    Raises:
        Invalid: with the rule, the place and what to do.
    """
    if guess is not None and _is_written_so(guess, text):
        return Loaded(guess, text, path)
    check_text(Source(text, path))
    data = jsontext.data(text)
    if data is not None:
        return Loaded(data, text, path)
    document = compose(text, path)
    return Loaded(document.root.data(), text, path, document)


def _is_written_so(data: dict[str, Any], text: str) -> bool:
    try:
        return emit(data) == text
    except Invalid:
        return False


def decoded(text: bytes, path: str, limit: int) -> str:
    """Return the text that some bytes are.

    Raises:
        Invalid: they are too many, or not UTF-8 without a byte-order mark.
    """
    if len(text) > limit:
        message = f"{len(text)} bytes are more than the limit of {limit}"
        raise Invalid(message, rule="too-large", path=path, remedy="put long content into an artifact")
    source = Source("", path)
    if text.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        message = "the file begins with a byte-order mark"
        raise source.refusal("byte-order-mark", message, 0, "save it as UTF-8 without one")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode("utf-8")
        message = f"the byte 0x{text[error.start]:02x} is not UTF-8 here"
        raise Source(before, path).refusal(
            "not-utf8", message, len(before), "save the file as UTF-8"
        ) from None
