"""``trainyard demo --islands``: two tenants' programs on two islands and one link, under one policy after the other."""

import asyncio
from typing import TYPE_CHECKING

from experiments.report.numbers import percent, seconds
from experiments.scenarios.backend import RunError
from trainyard.cli.exits import fail
from trainyard.cli.output import PrintableConsole, number_table
from trainyard.cli.report_files import ReportFiles
from trainyard.plans import plan
from trainyard.progress import progress
from workloads.loading import SHIPPED_SCENARIOS

if TYPE_CHECKING:
    from experiments.real_islands.comparison import Compared

POLICIES = ("ecmp", "crux", "echelonflow")
_FOR_S = 10.0


def demonstrate_islands(files: ReportFiles) -> None:
    """Run both tenants alone and together, print how fast they train, and write the page and the last trace."""
    files.prepare()
    with progress("policies are compiled"):
        for policy in POLICIES:  # here, where no decision has a time limit
            plan(SHIPPED_SCENARIOS / "pipeline.yaml", policy)
    try:
        alone_s, compared = asyncio.run(_measured())
    except RunError as error:
        fail(f"islands: {error}")
    _print(alone_s, compared)
    files.save_trace(compared[-1].events)
    if files.is_asked_for:
        from experiments.real_islands.report import islands_report

        files.save(islands_report(alone_s, compared))


async def _measured() -> "tuple[dict[str, float], list[Compared]]":
    from experiments.real_islands.comparison import alone, compared

    with progress("each tenant alone"):
        alone_s = await alone()
    together = []
    with progress(f"both under {', '.join(POLICIES)}"):
        async for each in compared(POLICIES, _FOR_S):
            together.append(each)
    return alone_s, together


def _print(alone_s: "dict[str, float]", compared: "list[Compared]") -> None:
    from experiments.real_islands.report import TITLE, leads_ms, share_alone

    tenants = tuple(alone_s)
    columns = [name for tenant in tenants for name in (tenant, "Of alone")]
    table = number_table(TITLE, "Policy", *columns, "Announced in time", "Known before it began")
    table.add_row("alone", *[cell for tenant in tenants for cell in (seconds(alone_s[tenant]), "")], "", "")
    for each in compared:
        cells = [
            cell
            for tenant in tenants
            for cell in (seconds(each.step_s[tenant]), percent(share_alone(each, alone_s, tenant)))
        ]
        share, leads = each.announced_share, leads_ms(each.events)
        cells.append("" if share is None else percent(share))
        cells.append("" if leads is None else f"{leads[0]:.0f} ms")
        table.add_row(each.policy, *cells)
    PrintableConsole().print(table)
