"""Groups of commands that import a command only when it runs or shows its own help."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import typer
from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer.core import TyperCommand, TyperGroup

from trainyard.cli.exits import EXIT_STATUS, refuse

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem

_WATCH_S = "2"


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


class ShortenedCommand(TyperCommand):
    """A command that also takes ``--watch`` without seconds, and ``--json`` for ``--output json``."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse arguments with what is short spelled out."""
        return super().parse_args(ctx, self.spelled_out(args))

    def spelled_out(self, args: Sequence[str]) -> list[str]:
        """Return the arguments of this command without what is short."""
        known = {option for parameter in self.params for option in parameter.opts}
        takes_json = "--output" in known and "--json" not in known
        end = args.index("--") if "--" in args else len(args)
        words: list[str] = []
        for position, word in enumerate(args[:end]):
            following = args[position + 1] if position + 1 < end else ""
            if word == "--watch" and word in known and not following.removeprefix(".")[:1].isdecimal():
                words.append(f"--watch={_WATCH_S}")
            else:
                words.append("--output=json" if takes_json and word == "--json" else word)
        return [*words, *args[end:]]


def command_group(summary: str, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    """Return a group of commands with this summary; ``cls`` may be a lazy group."""
    return typer.Typer(
        help=summary,
        epilog=EXIT_STATUS,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        callback=lambda: None,
        cls=cls,
    )


@contextmanager
def _told_in_one_line() -> Iterator[None]:
    """End the command with one line that names the option or argument that cannot be used."""
    try:
        yield
    except NoArgsIsHelpError:
        raise  # it shows the help
    except UsageError as error:
        refuse(" ".join(error.format_message().replace("Value error, ", "").replace("Input should", "should").split()))


class LazyGroup(TyperGroup):
    """A group that lists ``lazy_commands`` by their summaries and imports a command to run it.

    What cannot be parsed, also by the commands of groups in this one, ends the command with one line.

    ::

        class Tools(LazyGroup):
            lazy_commands = {"saw": LazyCommand(imported("tools.saw:saw"), "Cut a plank.")}

        tools = typer.Typer(cls=Tools, callback=lambda: None)
    """

    lazy_commands: ClassVar[Mapping[str, LazyCommand]] = {}
    _is_listing = False

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse the arguments of the group."""
        with _told_in_one_line():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: "Context") -> Any:
        """Run the command that the arguments name."""
        with _told_in_one_line():
            return super().invoke(ctx)

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
        settings = dict(lazy.settings or {})
        application.command(cmd_name, cls=ShortenedCommand, epilog=EXIT_STATUS, context_settings=settings)(loaded)
        return typer.main.get_command(application)

    def shell_complete(self, ctx: "Context", incomplete: str) -> "list[CompletionItem]":
        """Return what may stand here, with the commands' summaries, without importing any command."""
        self._is_listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._is_listing = False

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the help without importing any command."""
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False
