"""The commands, put together; each imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gitbus.cli.output import Verbosity

if TYPE_CHECKING:
    from typer.models import CommandInfo, TyperInfo

app = typer.Typer(
    name="gitbus",
    help="A git repository as the bus for a fleet of agents: nothing leaves the house unapproved or twice.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Where:
    """The folder that commands work in."""

    folder = Path()


def _version(value: bool) -> None:
    if value:
        from gitbus import __version__

        typer.echo(f"gitbus {__version__}")
        raise typer.Exit


@app.callback()
def common(
    directory: Annotated[
        Path, typer.Option("-C", metavar="DIR", help="Work in this folder's clone.")
    ] = Path(),
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but the answer.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options that every command has."""
    del version
    Where.folder = directory
    Verbosity.verbose, Verbosity.quiet = verbose, quiet


from gitbus.cli import acting, beginning, checking, deciding, goals, looking, setup  # noqa: E402

for module in (beginning, setup, checking, goals, acting, looking, deciding):
    module.register(app)

PANELS = {
    "Start": "demo init doctor check",
    "Goals and tasks": "goal run graph missing dead resume retry task",
    "Look": "status watch log audit receipt stuck",
    "Decide": "review approve reject revise redo withdraw resolve config person ratify",
    "Run": "up conduct work send worker due",
    "Keep": "archive gc upgrade schema",
}
"""The commands as ``--help`` shows them."""


def _arrange() -> None:
    """Put each command into its panel, in the order of the panels."""
    order = {name: panel for panel, names in PANELS.items() for name in names.split()}
    places = list(order)

    def place(one: CommandInfo | TyperInfo) -> int:
        return places.index(str(one.name))

    for command in app.registered_commands:
        command.name = str(command.name or getattr(command.callback, "__name__", ""))
        command.rich_help_panel = order[command.name]
    for group in app.registered_groups:
        group.rich_help_panel = order[str(group.name)]
    app.registered_commands.sort(key=place)
    app.registered_groups.sort(key=place)


_arrange()
