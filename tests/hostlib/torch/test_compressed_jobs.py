"""A real job of two ranks that compresses: it tells the controller what it sends, and hears what it may count on."""

import asyncio
from pathlib import Path

import pytest

from tests.hostlib.torch.jobs import fabric, ranks
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.slow

GRADIENT_BYTES = 3 * 4 * (64 * 64 + 64)


@pytest.mark.parametrize("arguments", [(), ("--attach-later",)], ids=["attached first", "attached later"])
def test_a_job_tells_what_it_sends_and_all_ranks_are_directed(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    async def scenario() -> None:
        name = "train_compressed"
        async with (
            fabric(tmp_path) as there,
            ranks(
                name, tmp_path / "job", *arguments, before=(), place=there.place, environment=there.environment
            ) as job,
        ):
            registry = there.controller.registry
            await job.until(lambda: bool(registry.job(name)) and bool(registry.sent_bytes(name)))
            (group,) = registry.sent_bytes(name)
            registered = registry.job(name)
            assert registered is not None
            (sizes,) = [
                [flow.size_bytes for flow in each.flows] for each in registered.flow_groups if each.name == group
            ]
            # Registered with what an all-reduce of all gradients sends in a ring of two, whatever it sends now.
            assert sizes == [GRADIENT_BYTES] * 2
            assert registry.sent_reasons(name)[group]
            await job.until(
                lambda: all(state and state["rates_bps"] and all(state["rates_bps"]) for state in job.states())
            )
            job.stop()
            results = await job.results()
            await until(lambda: registry.jobs == ())
        for result in results:
            assert result["errors"] == []
            assert result["network"]["rates_bps"][0] > 0
            assert result["network"]["slacks_s"] == [0.0]  # DDP waits as soon as the backward pass has ended
            assert result["network"]["ignored_directions"] == 0

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
