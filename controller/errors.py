"""The errors that the controller raises, as one tree.

* ``DaemonError``

  * ``StoreError``: the database cannot be used, or has not committed what it was given.

    * ``UnknownOutcomeError``: it may have committed it, or may still do so.
    * ``OutOfTermError``: another controller leads now.
    * ``LockedError``: another transaction holds the lock for too long.
    * ``NothingWithdrawnError`` (``controller.store.withdrawal``): a controller runs on the database, or it has no such
      job.

  * ``RegistrationError`` (``controller.registry.errors``): a request that the registry refuses, with a subclass for
    each reason.
  * ``UnfitFileError``, ``UnfitSchemaError``, ``DamagedRowError`` and ``MisfitError`` (``controller.store``): a database
    that cannot be used. Who opens it gets a StoreError.
  * ``RateLimitError`` (``controller.api.rate_limiter``): a caller asks for more than its share.
  * ``ConfigError`` (``controller.config``): a configuration file that cannot be used.
  * ``SouthboundError`` (``controller.southbound.southbound``): a switch refuses its rules. ``SwitchAwayError`` and
    ``SwitchRefusalError`` (``controller.southbound.p4runtime.writer``) are of one request to a switch.
    ``UnreadableAnswerError`` (``controller.southbound.p4runtime.reading``): a switch answers with what cannot be read.
  * ``NothingPlannedError``, ``NothingToExplainError`` and ``BusyError`` (``controller.api.errors``): an operator asks
    too early, for an unknown name, or when others have asked for too much.
  * ``AccessError`` (``controller.access.errors``): a call is refused because of who makes it: ``UnauthenticatedError``
    and ``ForbiddenError``. ``ConnectionLimitError`` (``controller.access.connections``): on too many connections.
  * ``UnusableFileError`` (``controller.access.reloading_file``): a file of keys or tokens cannot be used.
  * ``IdentityError`` (``controller.access.identity``) and ``AuthorityError`` (``controller.access.authority``): a
    certificate or token that describes nobody, or that cannot be made.
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
