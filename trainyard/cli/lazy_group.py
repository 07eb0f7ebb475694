"""Groups of commands whose modules are imported when one of them runs, not to list them."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from trainyard.cli.exits import EXIT_STATUS

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter


class LazyCommand(NamedTuple):
    """A command, or a group of them: ``location`` is ``module:attribute``, ``summary`` the first line of its help."""

    location: str
    summary: str
    settings: Mapping[str, Any] | None = None


class LazyGroup(TyperGroup):
    """A group that knows names and summaries of its ``commands_by_name`` and imports a command to run it."""

    commands_by_name: ClassVar[Mapping[str, LazyCommand]] = {}
    _is_listing = False

    def list_commands(self, ctx: "Context") -> list[str]:  # noqa: ARG002 (the signature is click's)
        """Names of the commands, in the order of the table."""
        return list(self.commands_by_name)

    def get_command(self, ctx: "Context", cmd_name: str) -> "Command | None":  # noqa: ARG002
        """The command of a name; while help is written, a stand-in that has its summary alone."""
        lazy = self.commands_by_name.get(cmd_name)
        if lazy is None:
            return None
        if self._is_listing:
            return TyperCommand(cmd_name, help=lazy.summary)
        module, _, attribute = lazy.location.partition(":")
        command = getattr(import_module(module), attribute)
        application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        if isinstance(command, typer.Typer):
            application.callback()(lambda: None)
            application.add_typer(command, name=cmd_name, epilog=EXIT_STATUS)
            group = typer.main.get_command(application)
            assert isinstance(group, TyperGroup)
            return group.commands[cmd_name]
        application.command(cmd_name, epilog=EXIT_STATUS, context_settings=dict(lazy.settings or {}))(command)
        return typer.main.get_command(application)

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the help without importing any command."""
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False
