"""Islands on a fabric that lose their link, or their controller in the middle of runs: contained, said, recovered."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime as rt
from tests.integration.islands import HOSTS, Islands, four_hosts
from tests.patience import PATIENCE_S
from tests.runtime.programs import slow_add_one
from tests.runtime.ranking import until

pytestmark = pytest.mark.slow

ITEMS = 1 << 16
LOST = 1
"""The island whose host loses its link."""


@pytest.fixture(scope="module")
def islands() -> Iterator[Islands]:
    with four_hosts() as made:
        yield made


@pytest.fixture(scope="module")
def server(islands: Islands) -> Iterator[rt.LocalRuntime]:
    with islands.runtime(devices=2) as started:
        yield started


def there_and_back(client: rt.Runtime, *islands: int) -> Any:
    """A program whose values go from one island to another and back."""
    slices = [client.make_virtual_device_set().add_slice(1, island=f"island-{number}") for number in islands]
    here, there = (rt.pmap(slow_add_one, devices=each) for each in slices)

    @rt.program
    def program(x: Any) -> Any:
        return here(there(here(x)))

    return program


def run(program: Any, times: int = 1) -> None:
    """Run a program several times at once, and see that it is right."""
    x = np.arange(float(ITEMS))
    for number, each in enumerate([program(x + number) for number in range(times)]):
        assert (each.numpy(PATIENCE_S) == x + number + 3).all()


def jobs_of(runtime: rt.Runtime) -> set[str]:
    """The jobs, once each is ranked and hosts know the levels of all flows; none before."""
    status = runtime.status()
    jobs, flows = status["network"]["jobs"], [flow for host in status["hosts"] for flow in host["flows"]]
    is_told = all(level >= 0 for _, _, level, _ in flows) and len(flows) == sum(each["flows"] for each in jobs)
    is_ranked = is_told and all(each["plan"] is not None for each in jobs)
    return {str(each["job"]) for each in jobs} if is_ranked else set()


def descriptors(runtime: rt.Runtime) -> dict[int, int]:
    """How many files the server and each host have open, by process."""
    status = runtime.status()
    processes = [status["pid"], *(host["pid"] for host in status["hosts"])]
    return {pid: len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in processes}


def holds_nothing(runtime: rt.Runtime) -> bool:
    """Whether no client holds or runs anything, and no flow or job is left."""
    status = runtime.status()
    held = [each[name] for each in status["clients"] for name in ("arrays", "executions", "held_back")]
    return not (any(held) or status["network"]["jobs"] or any(host["flows"] for host in status["hosts"]))


def test_an_island_without_its_link_fails_its_programs_alone_and_comes_back(
    islands: Islands, server: rt.LocalRuntime
) -> None:
    token = server.tokens["local"]
    run(there_and_back(server, 0, LOST))  # connections that stay open are open now
    run(there_and_back(server, 2, 3))
    with rt.connect(server.address, token) as client, rt.connect(server.address, token) as other:
        cut, beside = there_and_back(client, 0, LOST), there_and_back(other, 2, 3)
        for program in (cut, beside):
            run(program)
        until(lambda: jobs_of(server) or run(cut))
        began_s = time.monotonic()
        islands.cut_off([HOSTS[LOST]])
        try:
            error = failure_of(cut, beside)
        finally:
            islands.cut_off([])
        said_s = time.monotonic()
        assert "the connection from host" in str(error)
        assert {f"host {number}" in str(error) for number in (0, LOST)} == {True}
        until(lambda: is_right(cut))
        print(f"{error}; said after {said_s - began_s:.1f} s, right again {time.monotonic() - said_s:.1f} s later")
        until(lambda: is_right(cut) and jobs_of(server))
        run(beside)
    until(lambda: not any(host["flows"] for host in server.status()["hosts"]))


def failure_of(cut: Any, beside: Any) -> rt.RuntimeFailure:
    """Run one program until it fails, and another one, which must not, as long as that takes."""
    x = np.arange(float(ITEMS))
    while True:
        made = cut(x)
        while True:
            run(beside)
            try:
                made.numpy(0.1)
            except TimeoutError:
                continue
            except rt.LostError as error:
                return error
            break


def is_right(program: Any) -> bool:
    """Run a program; return whether nothing of it was lost."""
    try:
        run(program)
    except rt.LostError:
        return False
    return True


def test_after_a_link_was_lost_nothing_is_left_of_it(islands: Islands) -> None:
    with islands.runtime(devices=1) as server:
        opened = []
        for is_cut in (False, True, False):
            with rt.connect(server.address, server.tokens["local"]) as client:
                programs = there_and_back(client, 0, LOST), there_and_back(client, 2, 3)
                for program in programs:
                    until(partial(is_right, program))
                if is_cut:
                    islands.cut_off([HOSTS[LOST]])
                    try:
                        failure_of(*programs)
                    finally:
                        islands.cut_off([])
            until(lambda: holds_nothing(server))
            opened.append(descriptors(server))
        until(lambda: descriptors(server) == opened[0])


def test_transfers_under_way_go_on_when_the_controller_is_killed(islands: Islands, server: rt.LocalRuntime) -> None:
    with rt.connect(server.address, server.tokens["local"]) as client:
        program, later = there_and_back(client, 0, 1), there_and_back(client, 2, 3)
        run(program)
        until(lambda: jobs_of(server) or run(program))
        x = np.arange(float(ITEMS))
        under_way = [program(x) for _ in range(20)]
        islands.kill_controller()
        try:
            for each in under_way:
                assert (each.numpy(PATIENCE_S) == x + 3).all()
            run(later, times=3)  # no controller has ever heard of it
        finally:
            islands.restart_controller()
        until(lambda: len(jobs_of(server)) >= 2 or run(program) or run(later))
        run(later)
        sent = [event["args"] for event in client.trace() if event.get("cat") == "transfer"]
        newest = max(each["execution"] for each in sent)
        assert all(each["level"] is not None for each in sent if each["execution"] == newest)
