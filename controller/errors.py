"""The errors that the controller raises, as one tree.

* ``DaemonError``

  * ``StoreError``: the database cannot be used, or has not committed what it was given.

    * ``UnknownOutcomeError``: it may have committed it, or may still do so.
    * ``OutOfTermError``: another controller leads now.
    * ``LockedError``: another transaction holds the lock for too long.
    * ``InUseError`` (``controller.store.offline``): a controller runs on the database that was to be changed.
    * ``DamagedDatabaseError`` (``controller.store.database``): a file that is no whole database.
    * ``UnfitBackupError`` (``controller.store.backup``) and ``UnfitTargetError`` (``controller.store.restore``): a file
      that is no sound backup or cannot be written, and a database that a backup cannot be restored to.
    * ``NothingWithdrawnError`` (``controller.store.withdrawal``): the database has no such job.

  * ``RegistrationError`` (``controller.registry.errors``): a request that the registry refuses, with a subclass for
    each reason.
  * ``UnfitFileError``, ``UnfitSchemaError``, ``DamagedRowError`` and ``MisfitError`` (``controller.store``): a database
    that cannot be used. Who opens it gets a StoreError.
  * ``RateLimitError`` (``controller.api.rate_limiter``): a caller asks for more than its share.
  * ``ConfigError`` (``controller.config``): a configuration file that cannot be used.
  * ``SouthboundError`` (``controller.southbound.southbound``): a switch refuses its rules. ``SwitchAwayError`` and
    ``SwitchRefusalError`` (``controller.southbound.switch_access``) are of one request to a switch.
    ``UnreadableAnswerError`` (``controller.southbound.p4runtime.reading``): a switch answers with what cannot be read.
  * ``MalformedError`` (``controller.southbound.openflow.messages``): a switch that speaks OpenFlow sends bytes that are
    truncated or corrupt.
  * ``AwayError``, ``RefusedError``, ``StaleError`` and ``MisbehaviourError``
    (``controller.southbound.openflow.channel_errors``): of one connection over OpenFlow. ``MissingLibraryError``
    (``controller.southbound.openflow.error_words``): os-ken is not installed.
  * ``UnsafeBridgeError`` and ``OvsdbError`` (``controller.southbound.openflow``): a bridge of Open vSwitch that would
    forward by itself, and a database of one that does not answer or refuses.
  * ``NothingPlannedError``, ``NothingToExplainError`` and ``BusyError`` (``controller.api.errors``): an operator asks
    too early, for an unknown name, or when others have asked for too much.
  * ``UnknownDrainError`` and ``CutOffError`` (``controller.links.drains``): nothing of the name can be drained or is,
    or draining it would cut off hosts.
  * ``UnknownPinError`` and ``UnfitPinError`` (``controller.planning.pin_requests``): nothing of the name can be pinned
    or is, or it cannot be now.
  * ``SwitchHeldError`` (``controller.southbound.visit``) and ``NothingAppliedError``
    (``controller.process.one_shot``): nothing can be written to switches once, as a controller has them, or no Plan can
    be made.
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
