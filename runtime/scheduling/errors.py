"""What the scheduler refuses; each message names the gang."""


class SchedulingError(ValueError):
    """The base of the errors of this package."""


class InvalidGangError(SchedulingError):
    """A request that no scheduler can take."""


class GangOrderError(SchedulingError):
    """A number that does not follow the last one."""


class UnknownGangError(SchedulingError):
    """A gang that was not granted, or has completed."""
