"""The errors of gitbus, each with the exit code that the command line gives it.

::

    GitbusError
    ├── Refused            1    a rule says no; the remedy says what would make it pass
    │   ├── Invalid        1    a record cannot be read: file, line and column
    │   └── NoBus          1    there is no bus (or no repository) here
    ├── Misuse             2    the command or call itself is wrong
    ├── Unreachable        3    hub, forge or channel cannot be used; nothing was lost
    └── HubMoved           3    a compare-and-swap was lost more often than is bearable

An error carries data. Only ``gitbus.cli`` turns one into text on a screen.
"""

from __future__ import annotations


class GitbusError(Exception):
    """Anything that gitbus says no to.

    Args:
        message: what happened, in one sentence, for the person who has to act.
        rule: a stable name of the rule, such as ``duplicate-key``.
        remedy: what would make it pass, or nothing.
        place: where, such as ``goals/a/goal.yaml:3:7`` or a commit.
    """

    exit_code = 1

    def __init__(
        self, message: str, *, rule: str, remedy: str | None = None, place: str | None = None
    ) -> None:
        """Keep the parts; ``str()`` gives the message with its place."""
        super().__init__(message)
        self.message = message
        self.rule = rule
        self.remedy = remedy
        self.place = place

    def __str__(self) -> str:
        """Return ``place: message``, or the message where there is no place."""
        return f"{self.place}: {self.message}" if self.place else self.message


class Refused(GitbusError):
    """A rule refuses what was asked."""


class Invalid(Refused):
    """A record cannot be read.

    Args:
        message: what is wrong.
        rule: the rule's stable name.
        path: the record's path, as far as it is known.
        line: line, from 1; 0 where no line applies.
        column: column, from 1; 0 where none applies.
        remedy: what to do about it.

    ``others`` holds what else is wrong with the same record, once its reader has found more.
    """

    def __init__(
        self,
        message: str,
        *,
        rule: str,
        path: str = "",
        line: int = 0,
        column: int = 0,
        remedy: str | None = None,
    ) -> None:
        """Build the place from path, line and column."""
        self.path = path
        self.line = line
        self.column = column
        self.others: tuple[Invalid, ...] = ()
        where = ":".join(str(part) for part in (path or "<input>", line, column) if part)
        super().__init__(message, rule=rule, remedy=remedy, place=where)

    def at(self, path: str) -> Invalid:
        """Return the same error, placed in the file ``path``."""
        moved = Invalid(
            self.message,
            rule=self.rule,
            path=path,
            line=self.line,
            column=self.column,
            remedy=self.remedy,
        )
        moved.others = tuple(other.at(path) for other in self.others)
        return moved


class NoBus(Refused):
    """There is no bus in this folder, or no repository at all."""


class Misuse(GitbusError):
    """The command, or the call of the Python API, cannot mean anything."""

    exit_code = 2


class Unreachable(GitbusError):
    """The hub, the forge or a channel is not there or not what it should be."""

    exit_code = 3


class HubMoved(Unreachable):
    """The hub moved again and again while a change was being made on it."""
