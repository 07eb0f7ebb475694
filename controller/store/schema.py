"""The tables of a controller's database; their form has a version.

Times are seconds by the controller's clock. Lists stand as JSON in columns of text, which SQLite and PostgreSQL both
keep as they are.
"""

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, Integer, MetaData, Table, Text

SCHEMA_VERSION = 2
"""Version 1 has no silence, no instances and nothing measured; otherwise it is the same."""
METADATA = MetaData()


def _id() -> Column[int]:
    """Counts rows."""
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def _of_job() -> Column[str]:
    """The job that a row is of, and goes with."""
    return Column("job", Text, ForeignKey(JOB.c.name, ondelete="CASCADE"), primary_key=True)


PROPERTY = Table(
    "property",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Double, nullable=False),
)
"""What there is one of: the version of the schema, and from when on the registry knows every job."""

JOB = Table(
    "job",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("hosts", Text, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("compute_s", Double),
    Column("comm_start", Double),
    Column("work", Double),
    Column("arrival_s", Double, nullable=False),
    Column("owner_token", Text, nullable=False),
)
"""Registered jobs as they are now; a job that has gone has no row, one that is measured no profile."""

FLOW_GROUP = Table(
    "flow_group",
    METADATA,
    _of_job(),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("flows", Text, nullable=False),
)
"""Their flow groups in order of registration, flows with the 5-tuples that they have now."""

SILENCE = Table(
    "silence",
    METADATA,
    _of_job(),
    Column("silent_s", Double, nullable=False),
)
"""For how long jobs have not been heard of while a controller was there; none for those that were heard of in time."""

INSTANCE = Table(
    "instance",
    METADATA,
    _of_job(),
    Column("flow_group", Text, primary_key=True),
    Column("iteration", BigInteger, nullable=False),
    Column("reference_s", Double, nullable=False),
    Column("has_ended", Boolean, nullable=False),
)
"""The newest instance of every flow group that has begun one."""

MEASURED = Table(
    "measured",
    METADATA,
    _of_job(),
    Column("arrival_s", Double, nullable=False),
    Column("body", Text, nullable=False),
)
"""What was measured of jobs that tell their hosts alone, each the job of its name that arrived then."""

PLAN = Table(
    "plan",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("previous", Integer, nullable=False),
    Column("time_s", Double, nullable=False),
)
"""Plans that have been in force, each with the number of the one that was before it, 0 where none was."""

FACT = Table(
    "fact",
    METADATA,
    _id(),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("since", Integer, nullable=False),
    Column("until", Integer),
    Column("body", Text, nullable=False),
    Index("fact_now", "kind", "key", "until"),
    Index("fact_since", "since"),
    Index("fact_until", "until"),
)
"""What Snapshots and Plans are made up of, from one Plan until another one, by their numbers."""

SWITCH_WRITE = Table(
    "switch_write",
    METADATA,
    _id(),
    Column("time_s", Double, nullable=False, index=True),
    Column("plan", Integer, nullable=False, index=True),
    Column("switch", Text, nullable=False),
    Column("inserted", Integer, nullable=False),
    Column("modified", Integer, nullable=False),
    Column("deleted", Integer, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("problem", Text, nullable=False),
)
"""The audit trail: every request that asked a switch to change what it holds, under which Plan, and the answer."""

LEADERSHIP = Table(
    "leadership",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("term", Integer, nullable=False),
    Column("renewals", Integer, nullable=False),
    Column("lease_s", Double, nullable=False),
)
"""The lease on the fabric, one row once it has been taken: who leads, or led last."""
