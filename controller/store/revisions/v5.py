"""Version 5, the first that Alembic knows: versions 1 to 4 get the tables and columns that they lack.

Databases of one of those versions differ: some tables came without a new number. Each gets what is not there.
"""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, Integer, MetaData, Table, Text, inspect
from sqlalchemy import text as sql

revision = "5"
down_revision = None

_TABLES = MetaData()


def _id() -> Column[int]:
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def _of_job() -> Column[str]:
    return Column("job", Text, ForeignKey("job.name", ondelete="CASCADE"), primary_key=True)


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _number(name: str, *, index: bool = False) -> Column[int]:
    return Column(name, Integer, nullable=False, index=index)


def _double(name: str, *, index: bool = False) -> Column[float]:
    return Column(name, Double, nullable=False, index=index)


def _key(name: str) -> Column[int]:
    return Column(name, Integer, primary_key=True, autoincrement=False)


Table("property", _TABLES, Column("name", Text, primary_key=True), _double("value"))
Table(
    "job",
    _TABLES,
    Column("name", Text, primary_key=True),
    _text("hosts"),
    _number("gpus"),
    Column("compute_s", Double),
    Column("comm_start", Double),
    Column("work", Double),
    _double("arrival_s"),
    _text("owner_token"),
    Column("tenant", Text, nullable=False, server_default=""),
    Column("num_groups", Integer),
)
Table("flow_group", _TABLES, _of_job(), _key("position"), _text("name"), _text("flows"))
Table("task_graph", _TABLES, _of_job(), _text("body"))
Table("silence", _TABLES, _of_job(), _double("silent_s"))
Table(
    "instance",
    _TABLES,
    _of_job(),
    Column("flow_group", Text, primary_key=True),
    Column("iteration", BigInteger, nullable=False),
    _double("reference_s"),
    Column("has_ended", Boolean, nullable=False),
)
Table("measured", _TABLES, _of_job(), _double("arrival_s"), _text("body"))
Table("plan", _TABLES, _key("number"), _number("previous"), _double("time_s"))
Table(
    "fact",
    _TABLES,
    _id(),
    _text("kind"),
    _text("key"),
    _number("since"),
    Column("until", Integer),
    _text("body"),
    Index("fact_now", "kind", "key", "until"),
    Index("fact_since", "since"),
    Index("fact_until", "until"),
)
Table(
    "switch_write",
    _TABLES,
    _id(),
    _double("time_s", index=True),
    _number("plan", index=True),
    _text("switch"),
    _number("inserted"),
    _number("modified"),
    _number("deleted"),
    _text("outcome"),
    _text("problem"),
)
Table(
    "call",
    _TABLES,
    _id(),
    _double("time_s", index=True),
    _text("identity"),
    _text("tenant"),
    _text("role"),
    _text("method"),
    _text("subject"),
    _text("outcome"),
    _text("problem"),
)
Table(
    "drain",
    _TABLES,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("is_forced", Boolean, nullable=False),
    _double("since_s"),
    _text("by"),
)
Table(
    "leadership",
    _TABLES,
    _key("number"),
    _text("holder"),
    _number("term"),
    _number("renewals"),
    _double("lease_s"),
    Column("session", Text, nullable=False, server_default=""),
)

_OBSOLETE = "complete_from_s"
"""A property of older versions: a date, where a duration is kept now."""


def upgrade() -> None:
    """Add what is not there."""
    connection = op.get_bind()
    _TABLES.create_all(connection)
    inspector = inspect(connection)
    for table, column in (
        ("job", Column("tenant", Text, nullable=False, server_default="")),
        ("job", Column("num_groups", Integer)),
        ("leadership", Column("session", Text, nullable=False, server_default="")),
    ):
        if column.name not in {known["name"] for known in inspector.get_columns(table)}:
            op.add_column(table, column)
    connection.execute(sql("DELETE FROM property WHERE name = :name"), {"name": _OBSOLETE})
