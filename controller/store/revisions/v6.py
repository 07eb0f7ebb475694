"""Version 6: planning can be paused, and levels and paths pinned."""

from alembic import op
from sqlalchemy import Boolean, Column, Double, Integer, Text

revision = "6"
down_revision = "5"


def upgrade() -> None:
    """Add the tables of pauses and pins."""
    op.create_table(
        "pause",
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("since_s", Double, nullable=False),
        Column("by", Text, nullable=False),
        Column("reason", Text, nullable=False),
        Column("is_released", Boolean, nullable=False),
    )
    op.create_table(
        "pin",
        Column("target", Text, primary_key=True),
        Column("level", Integer),
        Column("path", Text),
        Column("since_s", Double, nullable=False),
        Column("until_s", Double, nullable=False),
        Column("by", Text, nullable=False),
    )
