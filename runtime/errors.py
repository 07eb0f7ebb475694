"""Errors of the runtime.

RuntimeFailure
├── RefusedError       the runtime refused a request, and changed nothing
├── ComputationError   a function raised; the message holds the traceback of the user's code
├── InputEndedError    an input function has no batch for this step
├── LostError          a process ended, and what was asked for with it
└── DisconnectedError  the client has no connection to its runtime any more

What raises an UnboundedError has asked nothing of the runtime: it is a TypeError.
"""


class RuntimeFailure(Exception):  # noqa: N818 - the base of what fails, and RuntimeError is Python's
    """What was asked of the runtime did not succeed."""


class RefusedError(RuntimeFailure):
    """The runtime refused a request and changed nothing; the message names what is wrong."""


class ComputationError(RuntimeFailure):
    """A function raised, or did not return what it states. The message holds the traceback of the user's code."""


class InputEndedError(RuntimeFailure):
    """An input function has no batch for this step, nor for later ones."""


class LostError(RuntimeFailure):
    """A process ended, and what was asked for was lost with it; the message names the process."""


class DisconnectedError(RuntimeFailure):
    """The client has no connection to its runtime any more."""


class UnboundedError(TypeError):
    """There is no program of a function, as one of its calls returns rows of which no bound is known."""


CAUSES = {each.__name__: each for each in (RefusedError, ComputationError, InputEndedError, LostError)}
"""By the names that messages carry."""
