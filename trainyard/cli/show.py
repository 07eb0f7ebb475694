"""``trainyard show``: what a running controller knows and has decided."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.table import Table

from controller.api.operations.client import Operations
from controller.api.operations.methods import (
    LIST_CABLES,
    LIST_CANDIDATES,
    LIST_CONTROLLERS,
    LIST_DRAINS,
    LIST_DROPS,
    LIST_FLOWS,
    LIST_JOBS,
    LIST_LEVELS,
    LIST_LINKS,
    LIST_LOADS,
    LIST_PINS,
    LIST_RULES,
    LIST_SWITCHES,
    Listing,
)
from controller.api.operations.sentences import pause_words
from trainyard.cli import show_tables as tables
from trainyard.cli.answers import Answer, OutputFormat, OutputOption
from trainyard.cli.connecting import ControllerAccess, asks_controller
from trainyard.cli.watching import WatchOption, show_answers
from trainyard.cli.wire_answers import listing_answer


class Subject(StrEnum):
    """What ``trainyard show`` can show."""

    JOBS = "jobs"
    PATHS = "paths"
    LEVELS = "levels"
    RULES = "rules"
    SWITCHES = "switches"
    LINKS = "links"
    CABLES = "cables"
    DRAINED = "drained"
    PINS = "pins"
    CANDIDATES = "candidates"
    LOADS = "loads"
    DROPS = "drops"
    CONTROLLER = "controller"


SubjectArgument = Annotated[
    Subject, typer.Argument(metavar="WHAT", help=f"One of {', '.join(Subject)}.", show_choices=False)
]


@asks_controller
def show(
    controller: ControllerAccess,
    what: SubjectArgument,
    output: OutputOption = OutputFormat.TABLE,
    watch: WatchOption = None,
) -> None:
    """Show what a running controller knows and has decided."""
    view = _VIEWS[what]
    with controller.connect() as operations:

        def ask() -> Answer:
            states = operations.list(view.listing)
            empty = "" if states else view.empty if isinstance(view.empty, str) else view.empty(operations)
            return listing_answer(what, view.listing, states, view.table, empty)

        show_answers(ask, output, watch)


@dataclass(frozen=True, slots=True)
class _View:
    """A listing of the operations service, the table of its states, and why there may be none."""

    listing: Listing[Any]
    table: Callable[[Sequence[Any]], Table]
    empty: str | Callable[[Operations], str]


def _no_rules(operations: Operations) -> str:
    for state in operations.list(LIST_CONTROLLERS):
        if state.pause.is_released:
            return f"all rules are out: {pause_words(state.pause)}"
    return "no rules are planned: the hash and the hosts do what a Plan asks"


def _no_candidates(operations: Operations) -> str:
    if operations.list(LIST_FLOWS):
        return "hosts do not probe: jobs send between hosts, but no agent of these hosts reports"
    return "hosts do not probe: no registered job sends between hosts"


_VIEWS: Mapping[Subject, _View] = {
    Subject.JOBS: _View(LIST_JOBS, tables.jobs, "no jobs are registered"),
    Subject.PATHS: _View(LIST_FLOWS, tables.paths, "no flows are planned: no job sends any, or none is planned yet"),
    Subject.LEVELS: _View(LIST_LEVELS, tables.levels, "no level is in use: no flows are planned"),
    Subject.RULES: _View(LIST_RULES, tables.rules, _no_rules),
    Subject.SWITCHES: _View(LIST_SWITCHES, tables.switches, "the topology has no switches"),
    Subject.LINKS: _View(LIST_LINKS, tables.links, "all cables are used"),
    Subject.CABLES: _View(
        LIST_CABLES, tables.cables, "the fabric is as its file says, as far as LLDP and probes show it"
    ),
    Subject.DRAINED: _View(LIST_DRAINS, tables.drained, "nothing is drained"),
    Subject.PINS: _View(LIST_PINS, tables.pins, "nothing is pinned"),
    Subject.CANDIDATES: _View(LIST_CANDIDATES, tables.candidates, _no_candidates),
    Subject.LOADS: _View(
        LIST_LOADS,
        tables.loads,
        "no switch has reported a load: hosts do not probe, or none of their probes has arrived",
    ),
    Subject.DROPS: _View(LIST_DROPS, tables.drops, "no report and no packet of a probe was rejected"),
    Subject.CONTROLLER: _View(LIST_CONTROLLERS, tables.controllers, "the controller says nothing of itself"),
}
