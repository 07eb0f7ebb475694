"""A run on real hosts survives the loss of any of its processes, and leaves nothing behind when it is killed."""

import asyncio
import random

import pytest

from benchmarks.real_hosts.fault_rounds import scenario_of_faults
from benchmarks.real_hosts.faults import FaultyRun, Round
from benchmarks.real_hosts.run_processes import Part
from tests.patience import PATIENCE_S
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import NetworkError
from topologies.specification import StarSpecification

SEED = 7

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    star = StarSpecification(kind="star", hosts=1, gpus_per_host=1, nics_per_host=1, host_link_gbps=1)
    try:
        with FabricNamespaces(star.build()):
            pass
    except NetworkError as error:
        pytest.skip(f"no process of a run on real hosts is killed: {error}")


def test_others_go_on_without_a_rank_the_controller_or_the_emulator() -> None:
    rounds = _play(Part.CONTROLLER, Part.RANK, Part.EMULATOR)
    assert {killed.part: killed.problems for killed in rounds} == {
        Part.CONTROLLER: (),
        Part.RANK: (),
        Part.EMULATOR: (),
    }


def test_others_go_on_without_an_agent_and_nothing_is_left_of_a_killed_run() -> None:
    rounds = _play(Part.AGENT, Part.RUN)
    assert {killed.part: killed.problems for killed in rounds} == {Part.AGENT: (), Part.RUN: ()}


def test_nothing_is_left_of_a_run_that_is_killed_while_it_starts() -> None:
    (killed,) = _play(Part.RUN)
    assert killed.problems == ()


def _play(*parts: Part) -> list[Round]:
    async def played() -> list[Round]:
        async with FaultyRun(
            scenario_of_faults(), random.Random(SEED), is_real_time=False, patience_s=PATIENCE_S
        ) as run:
            return await run.play(parts)

    return asyncio.run(played())
