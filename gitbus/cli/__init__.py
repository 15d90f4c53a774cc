"""The command line: arguments in, text out. The only place that prints or exits."""

from __future__ import annotations

import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: what stands behind ``gitbus``.
    """
    if arguments == ["--version"]:
        from gitbus import __version__

        print(f"gitbus {__version__}")  # noqa: T201
        return 0
    from gitbus.errors import GitbusError

    try:
        return _invoke(arguments)
    except GitbusError as error:
        from gitbus.cli.output import show_error

        show_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return 0
    except Exception as error:  # noqa: BLE001 - a bug: one line for people, the rest in a file
        _report_bug(error)
        return 1


def _invoke(arguments: list[str]) -> int:
    import typer

    from gitbus.cli.app import app

    usage: type[Any] = typer.BadParameter.__bases__[0]  # click's UsageError, wherever this typer has it from
    try:
        code = typer.main.get_command(app).main(args=arguments, prog_name="gitbus", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    except typer.Exit as exit_:
        return int(exit_.exit_code)
    except usage as error:
        error.show()
        return int(error.exit_code)
    return code if isinstance(code, int) else 0


def _report_bug(error: Exception) -> None:
    with tempfile.NamedTemporaryFile(
        "w", prefix="gitbus-bug-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        traceback.print_exception(error, file=file)
    name = type(error).__name__
    sys.stderr.write(f"gitbus: this is a bug ({name}); the traceback is in {Path(file.name)}\n")
