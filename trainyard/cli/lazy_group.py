"""Groups of commands that import a command only when it runs or shows its own help."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from trainyard.cli.exits import EXIT_STATUS

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter


class LazyCommand(NamedTuple):
    """A command, or a group of them, that is not imported yet.

    ``load`` imports and returns the function that becomes the command, or the Typer application of a group.
    ``summary`` is the first line of its help.
    """

    load: Callable[[], Any]
    summary: str
    settings: Mapping[str, Any] | None = None


def imported(location: str) -> Callable[[], Any]:
    """Return a function that imports what ``module:attribute`` names."""
    module, _, attribute = location.partition(":")
    return lambda: getattr(import_module(module), attribute)


class LazyGroup(TyperGroup):
    """A group that lists ``lazy_commands`` by their summaries and imports a command to run it.

    ::

        class Tools(LazyGroup):
            lazy_commands = {"saw": LazyCommand(imported("tools.saw:saw"), "Cut a plank.")}

        tools = typer.Typer(cls=Tools, callback=lambda: None)
    """

    lazy_commands: ClassVar[Mapping[str, LazyCommand]] = {}
    _is_listing = False

    def list_commands(self, ctx: "Context") -> list[str]:  # noqa: ARG002 (the signature is click's)
        """Return the names of the commands, in the order of the mapping."""
        return list(self.lazy_commands)

    def get_command(self, ctx: "Context", cmd_name: str) -> "Command | None":  # noqa: ARG002
        """Import and return the command of a name; while help is written, return a stand-in with its summary."""
        lazy = self.lazy_commands.get(cmd_name)
        if lazy is None:
            return None
        if self._is_listing:
            return TyperCommand(cmd_name, help=lazy.summary)
        loaded = lazy.load()
        if isinstance(loaded, typer.Typer):
            group = typer.main.get_group(loaded)
            group.name = cmd_name
            return group
        application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        application.command(cmd_name, epilog=EXIT_STATUS, context_settings=dict(lazy.settings or {}))(loaded)
        return typer.main.get_command(application)

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the help without importing any command."""
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False
