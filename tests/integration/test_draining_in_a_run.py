"""A switch is drained and used again in a run: no job loses a packet, and utilisation says what it costs."""

import asyncio
from collections.abc import Iterable
from dataclasses import astuple
from typing import Any

import pytest

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.client import Operations
from emulator.fabric import EmulatedFabric
from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.interfaces import ControllerAnswer
from experiments.scenarios.live_session import LiveSession
from experiments.scenarios.results import RunResult
from tests.integration.three_jobs import three_jobs

DRAINED_S, USED_AGAIN_S, END_S = 2.0, 4.0, 6.0
AGG = wire.DrainTarget(kind=wire.SWITCH, name="a1")


def _utilisation(result: RunResult, from_s: float, to_s: float) -> float:
    """Return the share of the time in which the jobs of the mix compute."""
    mix = [job for job in result.jobs if job.name.startswith("job-")]
    busy_s = sum(
        max(0.0, min(interval.end_s, to_s) - max(interval.start_s, from_s)) for job in mix for interval in job.computing
    )
    return busy_s / (to_s - from_s) / len(mix)


@pytest.mark.parametrize("policy", ["crux", "ecmp"])
def test_a_mix_goes_on_while_a_switch_is_drained(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    update, made = LiveSession.update, list[EmulatedFabric]()
    done: list[float] = []

    async def drained(
        session: LiveSession, now_s: float, arrived: Iterable[str], departed: Iterable[str], **more: Any
    ) -> ControllerAnswer:
        made[:] = [session._network.emulated]
        with Operations(session._process.address) as operations:
            if now_s >= DRAINED_S and not done:
                await asyncio.to_thread(operations.drain, AGG)
                done.append(now_s)
            if now_s >= USED_AGAIN_S and len(done) == 1:
                await asyncio.to_thread(operations.undrain, AGG)
                done.append(now_s)
        return await update(session, now_s, arrived, departed, **more)

    monkeypatch.setattr(LiveSession, "update", drained)
    scenario = three_jobs(END_S, [(f"at {time_s:g} s", "h0", time_s) for time_s in (DRAINED_S, USED_AGAIN_S)])
    result = asyncio.run(run_on_emulator(scenario, policy, on_progress=lambda *_: None))
    assert done == pytest.approx([DRAINED_S, USED_AGAIN_S], abs=0.05)
    [emulated] = made
    lost = {name: emulated.drops(name) for name in emulated.switches} | {"hosts": emulated.host_drops()}
    assert not any(any(astuple(drops)) for drops in lost.values())
    windows = ((0.5, DRAINED_S), (DRAINED_S, USED_AGAIN_S), (USED_AGAIN_S, END_S))
    before, while_drained, after = (_utilisation(result, *window) for window in windows)
    print(f"{policy}: utilisation {before:.1%} before, {while_drained:.1%} while drained, {after:.1%} after")
    assert while_drained > 0.6 * before
    assert after > 0.9 * before
