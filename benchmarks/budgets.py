"""Budgets of figures: what each should be at least, or at most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """What a figure should be at least, or at most."""

    figure: str
    limit: float
    is_least: bool

    @property
    def wanted(self) -> str:
        """For people."""
        return f"{'>=' if self.is_least else '<='} {self.limit:g}"

    def is_reached_by(self, value: float) -> bool:
        """Return whether a value keeps the budget."""
        return value >= self.limit if self.is_least else value <= self.limit


def budget_rows(budgets: Sequence[Budget], figures: Mapping[str, object]) -> list[dict[str, object]]:
    """Return a row for each budget whose figure is there: the value, what is wanted, and whether it is reached."""
    rows = []
    for budget in budgets:
        if budget.figure in figures:
            value = figures[budget.figure]
            verdict = "not measured"
            if isinstance(value, int | float):
                verdict = "reached" if budget.is_reached_by(value) else "missed"
            rows.append({"figure": budget.figure, "value": value, "wanted": budget.wanted, "verdict": verdict})
    return rows


def print_budget_rows(rows: Sequence[Mapping[str, object]]) -> None:
    """Print rows for people."""
    for row in rows:
        print(f"{row['figure']:32} {row['value']!s:>12}  {row['wanted']:>10}  {row['verdict']}")
