"""What has come of writing to switches, told as it happens."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from controller.southbound.drift import Drift
from controller.southbound.states import EntryT, Stage, Update, UpdateKind
from controller.southbound.switch_access import Access, SwitchRefusalError

MAX_UPDATES_PER_WRITE = 500
"""The error details of so many updates, about 100 bytes each, fit into the 64 KiB of metadata that clients accept."""


class WriteOutcome(StrEnum):
    """The outcome of a write request to a switch, or that its entries were found changed by somebody else."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNANSWERED = "unanswered"
    DRIFTED = "drifted"


@dataclass(frozen=True, slots=True)
class SwitchWrite:
    """A write request to a switch: the number of updates of each kind, the outcome, and the reason of a refusal.

    Where the switch has drifted, the numbers are those of the updates that repair it.
    """

    switch: str
    inserted: int
    modified: int
    deleted: int
    outcome: WriteOutcome
    problem: str = ""


OnWrite = Callable[[SwitchWrite], None]


async def write_stages(
    access: Access[EntryT], stages: Iterable[Stage[EntryT]], switch: str, on_write: OnWrite | None
) -> None:
    """Write stages one after the other, in requests of a bounded size, and tell what has come of each request.

    Raises:
        SwitchAwayError: The connection is lost.
        SwitchRefusalError: The switch refuses an update; those after it are not written.
    """
    for stage in stages:
        for first in range(0, len(stage), MAX_UPDATES_PER_WRITE):
            await _write(access, stage[first : first + MAX_UPDATES_PER_WRITE], switch, on_write)


def report_drift(switch: str, drift: Drift, on_write: OnWrite | None) -> None:
    """Tell that a switch has drifted."""
    if on_write is not None:
        counts = drift.missing, drift.changed, drift.foreign
        on_write(SwitchWrite(switch, *counts, WriteOutcome.DRIFTED, str(drift)))


async def _write(
    access: Access[EntryT], updates: Sequence[Update[EntryT]], switch: str, on_write: OnWrite | None
) -> None:
    outcome, problem = WriteOutcome.UNANSWERED, ""
    try:
        await access.write(updates)
        outcome = WriteOutcome.ACKNOWLEDGED
    except SwitchRefusalError as refusal:
        outcome, problem = WriteOutcome.REFUSED, str(refusal)
        raise
    finally:
        if on_write is not None:
            kinds = Counter(update.kind for update in updates)
            inserted, modified, deleted = (kinds[kind] for kind in UpdateKind)
            on_write(SwitchWrite(switch, inserted, modified, deleted, outcome, problem))
