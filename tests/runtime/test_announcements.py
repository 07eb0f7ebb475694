"""Programs over two islands on a network: a real controller is told what they send, and hosts send as it says."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.substrates.interface import NetworkHost
from runtime.traces import announced_before_producer_end
from tests.hostlib.served import Served
from tests.patience import PATIENCE_S
from tests.runtime.breaking import shut_down
from tests.runtime.cabled import two_network_hosts
from tests.runtime.ranking import controller, levels_of_sockets, until

pytestmark = pytest.mark.slow

ITEMS = 1 << 14


@rt.function(library="numpy", outputs=lambda x: x)
def slow_add_one(x: Any) -> Any:
    import time

    time.sleep(0.02)
    return x + 1


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[int, NetworkHost]]:
    with two_network_hosts() as (made, _):
        yield made


@pytest.fixture(scope="module")
def ranked(hosts: dict[int, NetworkHost]) -> Iterator[tuple[rt.LocalRuntime, Served]]:
    with (
        controller() as serving,
        rt.local(islands=2, network_hosts=hosts, controller=serving.address) as runtime,
    ):
        yield runtime, serving


def there_and_back(runtime: rt.Runtime) -> Any:
    """A program whose values go from island 0 to island 1 and back."""
    slices = [runtime.make_virtual_device_set().add_slice(2, island=f"island-{number}") for number in range(2)]
    here, there = (rt.pmap(slow_add_one, devices=each) for each in slices)

    @rt.program
    def program(x: Any) -> Any:
        return here(there(here(x)))

    return program


def run(program: Any, times: int = 1) -> None:
    """Run a program several times at once, and see that it is right."""
    x = np.arange(float(ITEMS))
    made = [program(x + number) for number in range(times)]
    for number, each in enumerate(made):
        assert (each.numpy(PATIENCE_S) == x + number + 3).all()


def jobs_of(runtime: rt.Runtime) -> list[dict[str, Any]]:
    return list(runtime.status()["network"]["jobs"])


def flows_of(runtime: rt.Runtime) -> list[list[int]]:
    return [flow for host in runtime.status()["hosts"] for flow in host["flows"]]


def sending_levels(runtime: rt.Runtime, host: int) -> list[int]:
    """The levels of the connections that a host has opened over the network, as its kernel has them."""
    slice_ = runtime.make_virtual_device_set().add_slice(1, island=f"island-{host}")
    found = rt.pmap(levels_of_sockets, devices=slice_, out_axes=None)(np.zeros(1)).numpy(PATIENCE_S)
    return [int(each) for each in found if each >= 0]


def test_a_program_is_registered_ranked_and_announced_before_it_sends(
    ranked: tuple[rt.LocalRuntime, Served],
) -> None:
    runtime, serving = ranked
    with rt.connect(runtime.address, runtime.tokens["local"]) as client:
        program = there_and_back(client)
        run(program)
        (job,) = until(lambda: [each for each in jobs_of(runtime) if each["plan"] is not None])
        assert (job["program"], job["flows"], job["refusal"]) == ("program", 2, None)
        (known,) = serving.registry.jobs
        assert [group.name for group in known.flow_groups] == ["island-0 to island-1", "island-1 to island-0"]
        until(lambda: all(level >= 0 for _, _, level in flows_of(runtime)))
        levels = {level for _, _, level in flows_of(runtime)}
        for host in range(2):
            assert set(sending_levels(client, host)) == levels
        run(program, times=5)
        events = client.trace()
        transfers = [event for event in events if event.get("cat") == "transfer"]
        assert {event["args"]["level"] for event in transfers[-10:]} == levels
        assert announced_before_producer_end(transfers[-10:]) == 1.0
    until(lambda: not jobs_of(runtime) and not flows_of(runtime))


def test_after_a_connection_broke_a_program_is_registered_with_others(ranked: tuple[rt.LocalRuntime, Served]) -> None:
    runtime, serving = ranked
    with rt.connect(runtime.address, runtime.tokens["local"]) as client:
        program = there_and_back(client)
        run(program)
        until(lambda: len(serving.registry.jobs) == 1)
        before = five_tuples(serving)
        slice_ = client.make_virtual_device_set().add_slice(1, island="island-0")
        rt.pmap(shut_down, devices=slice_)(np.zeros(1)).wait(PATIENCE_S)
        until(lambda: is_right(program) and len(jobs_of(runtime)) == 1 and before.isdisjoint(five_tuples(serving)))
        run(program)
    until(lambda: not jobs_of(runtime))


def is_right(program: Any) -> bool:
    """Run a program; return whether nothing of it was lost."""
    try:
        run(program)
    except rt.LostError:
        return False
    return True


def five_tuples(serving: Served) -> set[Any]:
    return {flow.five_tuple for job in serving.registry.jobs for group in job.flow_groups for flow in group.flows}


def test_when_slices_have_moved_a_program_is_registered_anew(ranked: tuple[rt.LocalRuntime, Served]) -> None:
    runtime, serving = ranked
    with (
        rt.connect(runtime.address, runtime.tokens["local"]) as client,
        rt.connect(runtime.address, runtime.tokens["local"]) as other,
    ):
        program = there_and_back(client)
        run(program)
        until(lambda: len(serving.registry.jobs) == 1)
        before = five_tuples(serving)
        moving = other.make_virtual_device_set().add_slice(1)
        runtime.migrate(f"local#{other_number(runtime)}", "island-0" if moving.island == "island-1" else "island-1")
        run(program)
        until(lambda: len(serving.registry.jobs) == 1 and before.isdisjoint(five_tuples(serving)))
        assert len(flows_of(runtime)) == 2
    until(lambda: not jobs_of(runtime) and not flows_of(runtime))


def other_number(runtime: rt.Runtime) -> int:
    """The number of the newest connection."""
    return max(int(client["number"]) for client in runtime.status()["clients"])


def test_without_an_answer_of_the_controller_everything_goes_on_unranked(
    hosts: dict[int, NetworkHost], capfd: pytest.CaptureFixture[str]
) -> None:
    with rt.local(islands=2, network_hosts=hosts, controller="127.0.0.1:1") as runtime:
        program = there_and_back(runtime)
        run(program, times=3)
        assert [level for _, _, level in flows_of(runtime)] == [-1, -1]
        (job,) = jobs_of(runtime)
        assert (job["plan"], job["refusal"]) == (None, None)
    assert capfd.readouterr().err.count("no controller answers at 127.0.0.1:1") == 1


def test_when_a_host_ends_its_programs_are_withdrawn(hosts: dict[int, NetworkHost]) -> None:
    with (
        controller() as serving,
        rt.local(islands=2, network_hosts=hosts, controller=serving.address) as runtime,
    ):
        program = there_and_back(runtime)
        run(program)
        until(lambda: len(serving.registry.jobs) == 1)
        (killed,) = (host["pid"] for host in runtime.status()["hosts"] if host["island"] == "island-1")
        os.kill(killed, signal.SIGKILL)
        until(lambda: not serving.registry.jobs and not flows_of(runtime))
        with pytest.raises(rt.RuntimeFailure):
            program(np.zeros(ITEMS)).numpy(PATIENCE_S)
        here = rt.pmap(slow_add_one, devices=runtime.make_virtual_device_set().add_slice(1))
        assert here(np.zeros(2)).numpy(PATIENCE_S).tolist() == [1, 1]
