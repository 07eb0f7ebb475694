"""The commands of jobs run as processes, report their iterations, and fail by name."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.scenarios.real_hosts.programs import CommandPrograms
from experiments.scenarios.transfers import IterationEnd, JobEnd, NetworkEvent
from tests.experiments.scenarios.real_hosts.here import Here
from tests.experiments.scenarios.real_hosts.jobs import PHASES, jobs_of
from tests.patience import until

_ENDED = JobEnd("job-0")


def _command(code: str, *arguments: str) -> dict[str, Any]:
    return PHASES | {"type": "command", "command": [sys.executable, "-c", code, *arguments]}


def _events(workload: dict[str, Any], **job: Any) -> list[NetworkEvent]:
    """Run a command to its end; return what happened."""
    routing, jobs = jobs_of({"workload": workload} | job)
    events: list[NetworkEvent] = []

    async def run() -> None:
        async with CommandPrograms(jobs, Here(), routing.fabric, "unix:/c.sock", events.append) as programs:
            assert programs.runs("job-0")
            programs.start("job-0")
            await until(lambda: any(isinstance(event, JobEnd) for event in events))

    asyncio.run(run())
    return events


def test_the_first_rank_reports_iterations() -> None:
    code = "import sys; [print(f'iteration {k} took {k}.5 s', flush=True) for k in range(3)]"
    assert _events(_command(code)) == [*(IterationEnd("job-0", k + 0.5) for k in range(3)), _ENDED]


def test_the_host_library_reports_iterations_late_where_the_program_does_not() -> None:
    code = "[print(f'trainyard: iteration {k} took {k}.5 s, 0.25 s ago', flush=True) for k in range(3)]"
    assert _events(_command(code)) == [*(IterationEnd("job-0", k + 0.5, ago_s=0.25) for k in range(3)), _ENDED]


@pytest.mark.parametrize("reporters", [("", "trainyard: "), ("trainyard: ", "")])
def test_iterations_count_once_where_the_program_reports_them_and_the_host_library_too(
    reporters: tuple[str, str],
) -> None:
    said = "\n".join(f"{by}iteration {k} took {k}.5 s" for k in range(2) for by in reporters)
    assert _events(_command("import sys; print(sys.argv[1])", said)) == [
        *(IterationEnd("job-0", k + 0.5) for k in range(2)),
        _ENDED,
    ]


def test_names_in_braces_are_filled_in_and_other_braces_stay() -> None:
    code = "import sys; sys.exit(' '.join(sys.argv[1:]))"
    (event,) = _events(_command(code, "{job}:{iterations}:{peers}:{rank}@{host}", "{{x}} {}"))
    assert isinstance(event, JobEnd)
    assert event.failure is not None
    assert event.failure.endswith(("job-0:2:h0,h2:0@h0 {{x}} {}", "job-0:2:h0,h2:1@h2 {{x}} {}"))
    assert "ended with status 1" in event.failure


def test_a_failure_has_the_error_that_a_launcher_hides_behind_its_own() -> None:
    said = ["[rank0]: ValueError: no data", *(f"line {number}" for number in range(20)), "torch.ChildFailedError: 1"]
    (event,) = _events(_command("import sys; print(sys.argv[1]); sys.exit(3)", "\n".join(said)))
    assert isinstance(event, JobEnd)
    assert event.failure is not None
    assert "status 3: [rank0]: ValueError: no data | line 16" in event.failure


def test_programs_find_their_place_in_the_environment() -> None:
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TRAINYARD_JOB", "TRAINYARD_CONTROLLER")
    code = f"import os, sys; sys.exit(' '.join(os.environ[name] for name in {names!r}))"
    (event,) = _events(_command(code))
    assert isinstance(event, JobEnd)
    assert event.failure is not None
    assert event.failure.endswith(("0 2 h0 29500 job-0 unix:/c.sock", "1 2 h0 29500 job-0 unix:/c.sock"))


def test_lines_without_end_and_progress_bars_are_read() -> None:
    code = "print('x' * 3_000_000, end=''); print(end='\\riteration 0 took 1.5 s\\r'); print('y' * 3_000_000)"
    assert _events(_command(code)) == [IterationEnd("job-0", 1.5), _ENDED]


def test_a_program_that_ignores_its_end_is_killed_with_the_run(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "pathlib.Path(sys.argv[1], str(os.getpid())).touch(); print('iteration 0 took 1 s', flush=True);"
        "time.sleep(10_000)"
    )
    routing, jobs = jobs_of({"workload": _command(code, str(tmp_path))})
    events: list[NetworkEvent] = []

    async def run() -> None:
        async with CommandPrograms(jobs, Here(), routing.fabric, "unix:/c.sock", events.append) as programs:
            programs.start("job-0")
            await until(lambda: bool(events) and len(list(tmp_path.iterdir())) == 2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.scenarios.real_hosts.programs._ENDS_WITHIN_S", 0.1)
        asyncio.run(run())
    assert not any(Path("/proc", file.name).exists() for file in tmp_path.iterdir())


def test_a_job_lasts_no_longer_than_its_duration() -> None:
    code = "import time; time.sleep(10_000)"
    assert _events(_command(code), iterations=None, duration_s=0.2) == [_ENDED]


def test_a_command_that_does_not_exist_fails_by_name() -> None:
    (event,) = _events(PHASES | {"type": "command", "command": ["/no/such/program"]})
    assert isinstance(event, JobEnd)
    assert event.failure is not None
    assert "/no/such/program" in event.failure


def test_all_programs_end_with_the_run() -> None:
    routing, jobs = jobs_of({"workload": _command("import time; print('up', flush=True); time.sleep(10_000)")})
    started: list[asyncio.subprocess.Process] = []

    class Watched(CommandPrograms):
        async def _start(self, *arguments: Any) -> asyncio.subprocess.Process:
            started.append(await super()._start(*arguments))
            return started[-1]

    async def run() -> None:
        async with Watched(jobs, Here(), routing.fabric, "unix:/c.sock", lambda _: None) as programs:
            programs.start("job-0")
            await until(lambda: len(started) == 2)

    asyncio.run(run())
    assert [process.returncode is not None for process in started] == [True, True]


def test_jobs_without_a_command_are_not_run() -> None:
    routing, jobs = jobs_of({})
    programs = CommandPrograms(jobs, Here(), routing.fabric, "unix:/c.sock", _no_event)
    assert not programs.runs("job-0")


def _no_event(_: NetworkEvent) -> None:
    raise AssertionError
