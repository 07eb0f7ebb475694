"""The tables of a controller's database, and the version of their form.

Times are seconds by the controller's clock. Lists are stored as JSON in columns of text, which SQLite and PostgreSQL
both leave as they are.

To change the schema:

1. Change the tables here, and count ``SCHEMA_VERSION`` up by one.
2. Add ``revisions/vN.py`` for this new version N, with what an existing database needs. It never imports this module,
   which goes on changing::

       from alembic import op
       from sqlalchemy import Column, Text

       revision = "6"
       down_revision = "5"


       def upgrade() -> None:
           op.create_table("muted", Column("host", Text, primary_key=True))

3. Only add: a controller of the version before may still be running on the database. What is not null in a column that
   is added needs a ``server_default``. ``tests/controller/store/test_migration.py`` compares the outcome with the
   tables here, on SQLite and PostgreSQL.
"""

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, Integer, MetaData, Table, Text

SCHEMA_VERSION = 6
"""The revision that the tables here are of."""
METADATA = MetaData()


def _id() -> Column[int]:
    """A column that numbers the rows."""
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def _of_job() -> Column[str]:
    """A column with the job that a row belongs to, and is deleted with."""
    return Column("job", Text, ForeignKey(JOB.c.name, ondelete="CASCADE"), primary_key=True)


PROPERTY = Table(
    "property",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Double, nullable=False),
)
"""Single values: the version of the schema, and for how long found rules are still kept."""

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
    Column("tenant", Text, nullable=False, server_default=""),
    Column("num_groups", Integer),
)
"""Registered jobs; a job that the controller measures has no profile, and one without identities no tenant.

Of the flow groups, the first ``num_groups`` are registered; further ones are those of a large registration that is
being written, or was cut off. None: all are, as version 2 left them.
"""

FLOW_GROUP = Table(
    "flow_group",
    METADATA,
    _of_job(),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("flows", Text, nullable=False),
)
"""The flow groups of jobs in order of registration, with the 5-tuples that their flows have now."""

TASK_GRAPH = Table(
    "task_graph",
    METADATA,
    _of_job(),
    Column("body", Text, nullable=False),
)
"""What one iteration of a job does; none for jobs that have not told it."""

SILENCE = Table(
    "silence",
    METADATA,
    _of_job(),
    Column("silent_s", Double, nullable=False),
)
"""How long jobs have been silent while a controller was running; none for jobs with regular heartbeats."""

INSTANCE = Table(
    "instance",
    METADATA,
    _of_job(),
    Column("flow_group", Text, primary_key=True),
    Column("iteration", BigInteger, nullable=False),
    Column("reference_s", Double, nullable=False),
    Column("has_ended", Boolean, nullable=False),
)
"""The newest instance of every flow group that has had one."""

MEASURED = Table(
    "measured",
    METADATA,
    _of_job(),
    Column("arrival_s", Double, nullable=False),
    Column("body", Text, nullable=False),
)
"""Measurements of jobs that report no profile; ``arrival_s`` tells apart jobs of the same name."""

PLAN = Table(
    "plan",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("previous", Integer, nullable=False),
    Column("time_s", Double, nullable=False),
)
"""Plans that have been in force, each with the number of the one before it, 0 where there was none."""

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
"""The facts that make up Snapshots and Plans; each holds from one Plan until another, by their numbers."""

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
"""The audit trail: every request to change the entries of a switch, its Plan and its outcome."""

CALL = Table(
    "call",
    METADATA,
    _id(),
    Column("time_s", Double, nullable=False, index=True),
    Column("identity", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("problem", Text, nullable=False),
)
"""The audit trail's other part: calls of identities that changed something or tried to."""

DRAIN = Table(
    "drain",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("is_forced", Boolean, nullable=False),
    Column("since_s", Double, nullable=False),
    Column("by", Text, nullable=False),
)
"""The switches, cables and hosts that operators have drained, and who has."""

PAUSE = Table(
    "pause",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("since_s", Double, nullable=False),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("is_released", Boolean, nullable=False),
)
"""Since when planning is paused, and whether all rules are withdrawn: one row while it is, and none otherwise."""

PIN = Table(
    "pin",
    METADATA,
    Column("target", Text, primary_key=True),
    Column("level", Integer),
    Column("path", Text),
    Column("since_s", Double, nullable=False),
    Column("until_s", Double, nullable=False),
    Column("by", Text, nullable=False),
)
"""What operators have pinned: the level of a job, or the path of a flow, by name."""

LEADERSHIP = Table(
    "leadership",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("term", Integer, nullable=False),
    Column("renewals", Integer, nullable=False),
    Column("lease_s", Double, nullable=False),
    Column("session", Text, nullable=False, server_default=""),
)
"""The leader's lease: one row, once it has been taken, with the controller that leads or led last.

``session`` marks the holder's process and its sessions (``controller.store.fencing``).
"""
