"""Whatever becomes of the controller, a job computes the same, bit by bit, and ends as it would without us."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.hostlib.torch.jobs import PROGRAMS, environment_of, ranks, run_launcher, served_at, two_hosts, unexpected
from tests.hostlib.torch.programs.train_ddp import PERIOD
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

NOBODY = {"TRAINYARD_CONTROLLER": "127.0.0.1:1"}
PACE = ("--pace-s", "0.02")
LATER_S = 30.0
"""So much later than without us a process may end."""
UNREACHABLE = ("no controller answers", "cannot be reached", "answers again", "the controller at")


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What both ranks of the job compute without us."""
    results: list[Any] = []

    async def scenario() -> None:
        folder = tmp_path_factory.mktemp("plain") / "job"
        async with ranks("train_ddp", folder, "--steps", str(PERIOD), before=()) as job:
            results.extend(await job.results())

    run(scenario)
    assert [result["network"] for result in results] == [None, None]
    assert len(set(results[0]["digests"])) == PERIOD
    return results


def check_same(results: list[Any], plain: list[Any]) -> None:
    """Check that the same was computed, and that nothing unexpected was said."""
    for result, reference in zip(results, plain, strict=True):
        assert len(result["digests"]) >= 5
        for step, digest in enumerate(result["digests"]):
            assert digest == reference["digests"][step % PERIOD]
        assert result["errors"] == []


def check_exits(results: list[Any], plain: list[Any]) -> None:
    for result, reference in zip(results, plain, strict=True):
        assert result["exit_s"] < reference["exit_s"] + LATER_S


def test_a_job_to_which_no_controller_is_named_runs_plainly_on_all_ranks(tmp_path: Path, plain: list[Any]) -> None:
    async def scenario() -> None:
        async with ranks("train_ddp", tmp_path / "job", "--steps", "40", "--keep-group", *PACE) as job:
            results = await job.results("no controller is named: set TRAINYARD_CONTROLLER")
        check_same(results, plain)
        check_exits(results, plain)
        for result in results:
            assert result["network"]["state"] == "plain"
            assert "no controller is named" in result["network"]["note"]
            assert result["network"]["iterations"] >= 5

    run(scenario)


def test_a_job_whose_controller_is_not_there_says_so_once_and_ends_in_time(tmp_path: Path, plain: list[Any]) -> None:
    async def scenario() -> None:
        async with ranks("train_ddp", tmp_path / "job", "--steps", "60", *PACE, environment=NOBODY) as job:
            first, second = await job.ended()
        notes = unexpected(first.errors)
        assert [note for note in notes if "no controller answers at 127.0.0.1:1" in note]
        assert len(notes) <= 2
        assert unexpected(second.errors) == []
        results = [json.loads((tmp_path / "job" / f"result-{rank}").read_text()) for rank in range(2)]
        for result, ended in zip(results, (first, second), strict=True):
            result.update(errors=[], exit_s=ended.ended_s - result["ended_s"])
        check_same(results, plain)
        check_exits(results, plain)

    run(scenario)


def test_a_controller_that_comes_late_and_is_killed_changes_no_bit(tmp_path: Path, plain: list[Any]) -> None:
    path = tmp_path / "controller"
    environment = environment_of(path)

    async def scenario() -> None:
        with two_hosts() as place:
            async with ranks("train_ddp", tmp_path / "job", *PACE, place=place, environment=environment) as job:
                await job.until_steps(10)
                async with served_at(path) as controller:
                    await job.until_levels()
                    (registered,) = controller.registry.jobs
                    assert registered.request.hosts == ("h0", "h2")
                await job.until_steps(10)
                job.stop()
                results = await job.results(*UNREACHABLE)
        check_same(results, plain)
        assert [result["network"]["levels"] for result in results] == [{"data 0": 7}] * 2

    run(scenario)


def test_under_torchrun_a_script_is_attached_as_it_is(tmp_path: Path, plain: list[Any]) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    script = [str(PROGRAMS / "train_ddp.py"), str(folder), "--steps", "20"]

    async def scenario() -> None:
        ended = await run_launcher(["-m", "hostlib", "run", *torchrun, *script], NOBODY)
        assert ended.status == 0, ended.errors
        results = [json.loads((folder / f"result-{rank}").read_text()) | {"errors": []} for rank in range(2)]
        check_same(results, plain)
        for result in results:
            assert result["network"]["job"].startswith("train_ddp-torchrun-")
            assert result["network"]["collectives"] > 20

    run(scenario)


def test_children_that_a_script_spawns_are_attached_and_the_script_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()

    async def scenario() -> None:
        ended = await run_launcher(["-m", "hostlib", "run", str(PROGRAMS / "spawn.py"), str(folder)], {})
        assert ended.status == 0, ended.errors
        assert unexpected(ended.errors, "no controller is named") == []
        for rank in range(2):
            found = json.loads((folder / f"result-{rank}").read_text())
            assert (found["value"], found["collectives"], found["rank"]) == (16.0, 4, rank)

    run(scenario)
