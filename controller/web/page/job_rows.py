"""The row of a job on the page."""

from collections.abc import Mapping

from controller.profiling.measured import ProfilingResults
from controller.registry.jobs import RegisteredJob
from controller.web.page.plan_view import JobView, Met

_HOSTS_NAMED = 64


def job_row(job: RegisteredJob, view: JobView | None, profile: str, measured_s: float | None) -> Mapping[str, object]:
    """The row of a job; ``profile`` says where its profile is from, ``measured_s`` is its iteration time."""
    request = job.request
    row: dict[str, object] = {
        "tenant": job.tenant,
        "gpus": request.gpus,
        "hosts": request.hosts[:_HOSTS_NAMED],
        "num_hosts": len(request.hosts),
        "flows": sum(len(group.flows) for group in job.flow_groups),
        "profile": profile,
        "measured_s": short(measured_s),
    }
    if view is not None:
        row |= {
            "rank": view.rank,
            "level": view.level,
            "intensity": short(view.intensity),
            "priority": short(view.priority),
            "alone_s": short(view.alone_s),
            "expected_s": short(view.expected_s),
            "goes_before": _met(view.goes_before),
            "waits": _met(view.waits),
            "shares": _met(view.shares),
        }
    return row


def profile_word(job: RegisteredJob, profiling: ProfilingResults) -> str:
    """Where the profile of a job is from."""
    name = job.request.name
    if job.request.profile is not None:
        return "told"
    if profiling.measured(name) is not None:
        return "measured"
    return "being measured" if profiling.profiled == name else "not known yet"


def _met(met: Met) -> list[object]:
    return [met.names, met.number]


def short(value: float | None) -> float | None:
    """A number to four digits: more would only make more changes."""
    return None if value is None else float(f"{value:.4g}")
