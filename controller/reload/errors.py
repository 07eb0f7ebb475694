"""The errors of a reload."""

from controller.errors import DaemonError


class ReloadError(DaemonError):
    """A configuration that a running controller cannot change to; ``problems`` has one line for each reason."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class EndedMeanwhileError(ReloadError):
    """The controller has ended, or leads no longer, before the change was complete."""
