"""Programs over two islands on a network: a real controller is told what they send, and hosts send as it says."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
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
from tests.runtime.programs import slow_add_one
from tests.runtime.ranking import controller, opened_sockets, until
from topologies.addressing import TCP_PROTOCOL
from topologies.steering import Steering

pytestmark = pytest.mark.slow

ITEMS = 1 << 14
FLOWS = 4
"""As many as switches have uplinks in the fabric that ``tests.hostlib.served`` serves."""


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


def until_while_it_runs(run_again: Callable[[], None], holds: Callable[[], Any]) -> Any:
    """Return what a condition returns once it holds, and run a program until then.

    Where a busy machine lets functions seem much slower than before, its job is withdrawn, and registered anew by its
    next run.
    """
    return until(lambda: holds() or run_again())


def jobs_of(runtime: rt.Runtime) -> list[dict[str, Any]]:
    return list(runtime.status()["network"]["jobs"])


def flows_of(runtime: rt.Runtime) -> list[list[int]]:
    return [flow for host in runtime.status()["hosts"] for flow in host["flows"]]


def is_ranked(runtime: rt.Runtime) -> bool:
    """Whether hosts know the levels of both flows of a program."""
    levels = [level for _, _, level, _ in flows_of(runtime)]
    return len(levels) == 2 and min(levels) >= 0


def sockets_of(runtime: rt.Runtime, host: int) -> list[tuple[int, int]]:
    """Port and level of the connections that a host has opened over the network, as its kernel has them."""
    slice_ = runtime.make_virtual_device_set().add_slice(1, island=f"island-{host}")
    found = rt.pmap(opened_sockets, devices=slice_, out_axes=None)(np.zeros(1)).numpy(PATIENCE_S)
    return [(int(port), int(level)) for port, level in found if level >= 0]


def test_a_program_is_registered_ranked_and_announced_before_it_sends(
    ranked: tuple[rt.LocalRuntime, Served],
) -> None:
    runtime, serving = ranked
    with rt.connect(runtime.address, runtime.tokens["local"]) as client:
        program = there_and_back(client)
        run(program)
        again = partial(run, program)
        (job,) = until_while_it_runs(again, lambda: [each for each in jobs_of(runtime) if each["plan"] is not None])
        assert (job["program"], job["flows"], job["refusal"]) == ("program", 2, None)
        (known,) = serving.registry.jobs
        assert [group.name for group in known.flow_groups] == ["island-0 to island-1", "island-1 to island-0"]
        until_while_it_runs(again, lambda: is_ranked(runtime))
        levels = {level for _, _, level, _ in flows_of(runtime)}
        for host in range(2):
            assert {level for _, level in sockets_of(client, host)} == levels
        run(program, times=5)
        events = client.trace()
        transfers = [event for event in events if event.get("cat") == "transfer"]
        assert {event["args"]["level"] for event in transfers[-10:]} == levels
        assert announced_before_producer_end(transfers[-10:]) == 1.0
    until(lambda: not jobs_of(runtime) and not flows_of(runtime))


def test_after_a_connection_broke_another_is_opened_from_its_port(ranked: tuple[rt.LocalRuntime, Served]) -> None:
    runtime, serving = ranked
    with rt.connect(runtime.address, runtime.tokens["local"]) as client:
        program = there_and_back(client)
        run(program)
        until_while_it_runs(partial(run, program), lambda: len(five_tuples(serving)) == 2 and is_ranked(runtime))
        before = five_tuples(serving)
        slice_ = client.make_virtual_device_set().add_slice(1, island="island-0")
        rt.pmap(shut_down, devices=slice_)(np.zeros(1)).wait(PATIENCE_S)
        until(lambda: is_right(program))
        assert five_tuples(serving) == before
        # The kernel of the host that broke them may keep its ends for a minute.
        until(lambda: ports_of(runtime, 1) == source_ports(serving, "h2"))
        run(program)
    until(lambda: not jobs_of(runtime))


def ports_of(runtime: rt.Runtime, host: int) -> list[int]:
    """The ports that flows of a host send from."""
    (found,) = (each for each in runtime.status()["hosts"] if each["island"] == f"island-{host}")
    return sorted(port for _, _, _, port in found["flows"])


def sends_as_told(runtime: rt.Runtime, number: int, serving: Served, host: str) -> bool:
    """Whether flows of a host send from the ports that the controller believes."""
    return ports_of(runtime, number) == source_ports(serving, host)


def source_ports(serving: Served, host: str) -> list[int]:
    """The source ports that the controller believes a host to send from."""
    groups = [group for job in serving.registry.jobs for group in job.flow_groups]
    return sorted(flow.five_tuple.source_port for group in groups for flow in group.flows if flow.source.host == host)


def test_flows_send_from_the_ports_with_which_the_hash_gives_them_the_paths_of_the_plan(
    hosts: dict[int, NetworkHost],
) -> None:
    with (
        controller(steering=Steering.SOURCE_PORT) as serving,
        rt.local(islands=2, network_hosts=hosts, controller=serving.address) as runtime,
    ):
        program = fanned_out(runtime)
        given = np.arange(float(ITEMS))

        def fan_out() -> None:
            for each in program(given):
                assert (each.numpy(PATIENCE_S) == given + 2).all()

        def is_steered() -> bool:
            ports = ports_of(runtime, 0)
            return [job["plan"] is None for job in jobs_of(runtime)] == [False] and ports == source_ports(serving, "h0")

        fan_out()
        until_while_it_runs(fan_out, is_steered)
        assert {flow.five_tuple.service.protocol for flow in flows_at(serving)} == {TCP_PROTOCOL}
        until(lambda: sorted(port for port, _ in sockets_of(runtime, 0)) == source_ports(serving, "h0"))
        uplinks = {serving.routing.hashed_path(flow.five_tuple)[1] for flow in flows_at(serving)}
        assert len(uplinks) == FLOWS, "each flow has an uplink of its own"
        before = num_transfers(runtime)
        fan_out()
        assert num_transfers(runtime) == before + FLOWS
        assert jobs_of(runtime)[0]["unsteered"] == 0


def num_transfers(runtime: rt.Runtime) -> int:
    return sum(event.get("cat") == "transfer" for event in runtime.trace())


def flows_at(serving: Served) -> list[Any]:
    return [flow for job in serving.registry.jobs for group in job.flow_groups for flow in group.flows]


def fanned_out(runtime: rt.Runtime) -> Any:
    """A program whose values go from island 0 to island 1, each as a flow of its own."""
    slices = [runtime.make_virtual_device_set().add_slice(1, island=f"island-{number}") for number in range(2)]
    here, there = (rt.pmap(slow_add_one, devices=each) for each in slices)

    @rt.program
    def program(x: Any) -> Any:
        return tuple(there(here(x)) for _ in range(FLOWS))

    return program


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
        again = partial(run, program)
        (before,) = until_while_it_runs(again, lambda: serving.registry.jobs)
        moving = other.make_virtual_device_set().add_slice(1)
        runtime.migrate(f"local#{other_number(runtime)}", "island-0" if moving.island == "island-1" else "island-1")
        run(program)
        until_while_it_runs(
            again, lambda: [job["job"] for job in jobs_of(runtime)] == names(serving) != [before.request.name]
        )
        until_while_it_runs(again, lambda: is_ranked(runtime))
        for number, host in enumerate(("h0", "h2")):
            until_while_it_runs(again, partial(sends_as_told, runtime, number, serving, host))
    until(lambda: not jobs_of(runtime) and not flows_of(runtime))


def names(serving: Served) -> list[str]:
    return [job.request.name for job in serving.registry.jobs]


def other_number(runtime: rt.Runtime) -> int:
    """The number of the newest connection."""
    return max(int(client["number"]) for client in runtime.status()["clients"])


def test_without_an_answer_of_the_controller_everything_goes_on_unranked(
    hosts: dict[int, NetworkHost], capfd: pytest.CaptureFixture[str]
) -> None:
    with rt.local(islands=2, network_hosts=hosts, controller="127.0.0.1:1") as runtime:
        program = there_and_back(runtime)
        run(program, times=3)
        assert [level for _, _, level, _ in flows_of(runtime)] == [-1, -1]
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
        until_while_it_runs(partial(run, program), lambda: serving.registry.jobs)
        (killed,) = (host["pid"] for host in runtime.status()["hosts"] if host["island"] == "island-1")
        os.kill(killed, signal.SIGKILL)
        until(lambda: not serving.registry.jobs and not flows_of(runtime))
        with pytest.raises(rt.RuntimeFailure):
            program(np.zeros(ITEMS)).numpy(PATIENCE_S)
        here = rt.pmap(slow_add_one, devices=runtime.make_virtual_device_set().add_slice(1))
        assert here(np.zeros(2)).numpy(PATIENCE_S).tolist() == [1, 1]
