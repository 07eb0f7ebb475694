"""The page of two tenants on islands: how fast they trained under each policy, and pictures of what was sent."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from experiments.real_islands.comparison import (
    ACTIVATION_BYTES,
    BUCKETS,
    GRADIENT_BYTES,
    LINK_GBPS,
    MICRO_BATCHES,
    STAGE_S,
    TENANTS,
    Compared,
)
from experiments.report.comparison import Article, Cell, Section, Table
from experiments.report.device_rows import device_rows
from experiments.report.figure import ReportFigure
from experiments.report.numbers import percent, seconds
from experiments.report.page import Report

_SHOWN_MS = 1_500.0
_US_PER_MS = 1e3
_NOTHING = "\N{EN DASH}"
TITLE = "Two tenants on two islands and one link"


def share_alone(compared: Compared, alone_s: Mapping[str, float], tenant: str) -> float:
    """Return how fast a tenant trained, as a share of how fast it does alone."""
    return alone_s[tenant] / compared.step_s[tenant]


def leads_ms(events: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """Return how long before it began a transfer was announced and ranked, in medians; None if no one was ranked."""
    ranked = [
        (event["ts"] - event["args"]["announced_us"], event["ts"] - event["args"]["ranked_us"])
        for event in events
        if event.get("cat") == "transfer" and event["args"]["ranked_us"] is not None
        if event["args"]["announced_us"] is not None
    ]
    if not ranked:
        return None
    return median(each[0] for each in ranked) / _US_PER_MS, median(each[1] for each in ranked) / _US_PER_MS


def islands_report(alone_s: Mapping[str, float], compared: Sequence[Compared]) -> Report:
    """Return the page."""
    speed = Table(
        "Time of a step, and the share of the tenant's rate alone",
        ("Policy", *TENANTS),
        (
            (Cell("alone"), *(Cell(seconds(alone_s[tenant])) for tenant in TENANTS)),
            *(
                (
                    Cell(each.policy),
                    *(
                        Cell(f"{seconds(each.step_s[tenant])}, {percent(share_alone(each, alone_s, tenant))}")
                        for tenant in TENANTS
                    ),
                )
                for each in compared
            ),
        ),
    )
    known = Table(
        "What was known of transfers before they began",
        ("Policy", "Announced before made", "Announced before it began", "Ranked before it began"),
        tuple((Cell(each.policy), *map(Cell, _known(each))) for each in compared),
    )
    explanation = (
        f"The pipeline passes {MICRO_BATCHES} micro-batches of {ACTIVATION_BYTES / 1e3:g} kB through stages of "
        f"{STAGE_S * 1e3:g} ms, the replicas exchange {GRADIENT_BYTES / 1e6:g} MB in {BUCKETS} buckets, over one link "
        f"of {LINK_GBPS * 1e3:g} Mbit/s. Devices only wait; what is sent is real."
    )
    pictures = tuple(_picture(each) for each in compared)
    sections = (
        Section("Speed", explanation, (speed,)),
        Section("Transfers", "", (known,)),
        Section("Devices and flows", "", (), pictures),
    )
    return Report(TITLE, (Article("islands", "", TITLE, "", sections, ""),))


def _known(compared: Compared) -> tuple[str, str, str]:
    leads = leads_ms(compared.events)
    share = _NOTHING if compared.announced_share is None else percent(compared.announced_share)
    if leads is None:
        return share, _NOTHING, _NOTHING
    return share, f"{leads[0]:.0f} ms", f"{leads[1]:.0f} ms"


def _picture(compared: Compared) -> ReportFigure:
    """Draw the last moments of both."""
    end_ms = max(each["ts"] + each["dur"] for each in compared.events if each["ph"] == "X") / _US_PER_MS
    title = f"Under {compared.policy}"
    return device_rows(compared.events, title, max(0.0, end_ms - _SHOWN_MS), end_ms)
