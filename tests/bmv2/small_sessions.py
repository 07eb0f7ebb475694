"""Which random sessions the small programs have, and whose answers to them are recorded."""

from collections.abc import Callable, Mapping

from tests.bmv2.meter_sessions import meter_session
from tests.bmv2.replication_sessions import replication_session
from tests.bmv2.session import Session
from tests.bmv2.small_programs import METERS, REPLICATION, SmallProgram

SMALL_SESSIONS: Mapping[SmallProgram, Callable[[int], Session]] = {
    REPLICATION: replication_session,
    METERS: meter_session,
}
"""A session for every seed."""

SMALL_SEEDS = range(6)
"""Seeds of the sessions among the vectors."""
