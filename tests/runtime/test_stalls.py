"""A host with little memory: what a program was announced to send is cancelled while it waits, by a real controller."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.substrates.interface import NetworkHost
from tests.hostlib.served import Served
from tests.patience import PATIENCE_S
from tests.runtime.cabled import two_network_hosts
from tests.runtime.programs import slow_add_one
from tests.runtime.ranking import controller, until

pytestmark = pytest.mark.slow

ITEMS, BYTES = 50, 400


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[int, NetworkHost]]:
    with two_network_hosts() as (made, _):
        yield made


def instances(serving: Served) -> set[tuple[int, bool]]:
    """The newest instances of the only job, and whether they have ended."""
    names = [job.request.name for job in serving.registry.jobs]
    found = [each for name in names for each in serving.registry.instances(name).values()]
    return {(each.iteration, each.has_ended) for each in found}


def test_a_run_that_waits_for_memory_at_its_destination_is_cancelled_and_announced_again(
    hosts: dict[int, NetworkHost],
) -> None:
    with (
        controller() as serving,
        rt.local(
            islands=2,
            devices=1,
            device_memory_bytes=2 * BYTES + 200,
            host_memory_bytes=BYTES,
            network_hosts=hosts,
            controller=serving.address,
        ) as runtime,
    ):
        slices = [runtime.make_virtual_device_set().add_slice(1, island=f"island-{number}") for number in range(2)]
        here, there = (rt.pmap(slow_add_one, devices=each) for each in slices)

        @rt.program
        def program(x: Any) -> Any:
            return there(here(x))

        x = np.arange(float(ITEMS))
        assert (program(x).numpy(PATIENCE_S) == x + 2).all()
        # Only a run that begins after the flow groups are there is told to have begun.
        until(lambda: any(job.flow_groups for job in serving.registry.jobs))
        assert (program(x).numpy(PATIENCE_S) == x + 2).all()
        until(lambda: {ended for _, ended in instances(serving)} == {True})
        ((before, _),) = instances(serving)

        held = [there(np.full(ITEMS, float(number))).wait(PATIENCE_S) for number in range(2)]
        waiting = program(x)
        with pytest.raises(TimeoutError):
            waiting.wait(0.3)
        until(lambda: instances(serving) == {(before + 1, True)})
        del held[0]
        assert (waiting.numpy(PATIENCE_S) == x + 2).all()
        until(lambda: instances(serving) == {(before + 2, True)})
