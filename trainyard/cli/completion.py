"""``trainyard completion``: commands and options completed by the shell."""

from enum import StrEnum
from typing import Annotated

import typer
from typer._click.shell_completion import CompletionItem, ShellComplete, add_completion_class, get_completion_class
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script

from trainyard.cli import COMPLETE


class Shell(StrEnum):
    """A shell that completes commands."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


ShellArgument = Annotated[
    Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell that reads it.", show_choices=False)
]


def completion(shell: ShellArgument) -> None:
    """Print the script with which a shell completes commands and options.

    For this shell: source <(trainyard completion bash). For every shell: write it to where yours looks for
    completions, such as ~/.local/share/bash-completion/completions/trainyard, or ~/.config/fish/completions.
    """
    asked = {"prog_name": "trainyard", "complete_var": COMPLETE, "shell": shell.value}
    print(get_completion_script(**asked))


def prepare_completion() -> None:
    """Let the next call of the application answer a shell that asks what may stand on a line."""
    completion_init()
    for shell in Shell:
        if (known := get_completion_class(shell)) is not None:
            add_completion_class(type(known.__name__, (_WordsAlone, known), {}), shell)


class _WordsAlone(ShellComplete):
    """Answers commands, options and their values. Names of files are left to the shell, which knows them."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        found = super().get_completions(args, incomplete)
        return [item for item in found if item.type == "plain"]
