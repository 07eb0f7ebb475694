"""The errors that the controller raises, as one tree.

* ``DaemonError``

  * ``StoreError``: the database cannot be used, or has not committed what it was given.

    * ``UnknownOutcomeError``: it may have committed it, or may still do so.
    * ``OutOfTermError``: another controller leads now.
    * ``LockedError``: another transaction holds the lock for too long.

  * ``RegistrationError`` (``controller.registry.errors``): a request that the registry refuses, with a subclass for
    each reason.
  * ``RateLimitError`` (``controller.api.rate_limiter``): a connection asks for more than its share.
  * ``ConfigError`` (``controller.config``): a configuration file that cannot be used.
  * ``SouthboundError`` (``controller.southbound.southbound``): a switch refuses its rules. ``SwitchAwayError`` and
    ``SwitchRefusalError`` (``controller.southbound.p4runtime.writer``) are of one request to a switch.
  * ``NothingPlannedError`` and ``NothingToExplainError`` (``controller.api.errors``): an operator asks too early, or
    for an unknown name.
  * ``AccessError`` (``controller.access.errors``): a call is refused because of who makes it: ``UnauthenticatedError``
    and ``ForbiddenError``. ``ConnectionLimitError`` (``controller.access.connections``): on too many connections.
  * ``UnusableFileError`` (``controller.access.reloading_file``): a file of keys or tokens cannot be used.
  * ``RecordError`` (``controller.record.facts``): a record that cannot be read.

``OperationsError`` (``controller.api.operations.client``) stands apart: the programs of operators raise it, not the
controller.
"""


class DaemonError(Exception):
    """The base of the errors that the controller daemon raises; the host library has errors of its own."""


class StoreError(DaemonError):
    """The database cannot be used, or has not committed what it was given; the message names the database."""


class UnknownOutcomeError(StoreError):
    """The database has not said whether it committed what it was given; it may still do so."""


class OutOfTermError(StoreError):
    """Another controller leads now; the database itself works."""


class LockedError(StoreError):
    """Another transaction has held the lock for longer than this one waits; nothing was changed."""
