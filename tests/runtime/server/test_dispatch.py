from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from runtime.server.dispatch import ParallelDispatch, SequentialDispatch
from runtime.server.hosts import Host


@dataclass
class Recorder:
    """A host that notes what it is told."""

    granted: list[tuple[int, int]] = field(default_factory=list)

    def grant(self, grants: Iterable[tuple[int, int]]) -> None:
        self.granted += grants


@dataclass(frozen=True)
class Execution:
    """Nodes by number, each with its hosts and its makers."""

    number: int
    nodes: Mapping[int, tuple[Sequence[int], Sequence[int]]]

    def hosts_of(self, node: int) -> Sequence[int]:
        return self.nodes[node][0]

    def makers_of(self, node: int) -> Sequence[int]:
        return self.nodes[node][1]


CHAIN = Execution(7, {1: ((0, 1), ()), 2: ((1,), (1,)), 3: ((0,), (2,))})
GRANTS = [(CHAIN, 1), (CHAIN, 2), (CHAIN, 3)]


def hosts() -> tuple[list[Recorder], Mapping[int, Host]]:
    recorders = [Recorder(), Recorder()]
    return recorders, cast("Mapping[int, Host]", dict(enumerate(recorders)))


def test_parallel_dispatch_tells_every_host_at_once() -> None:
    recorders, by_number = hosts()
    ParallelDispatch(by_number).send(GRANTS)
    assert [each.granted for each in recorders] == [[(7, 1), (7, 3)], [(7, 1), (7, 2)]]


def test_sequential_dispatch_waits_for_all_hosts_of_what_a_computation_depends_on() -> None:
    recorders, by_number = hosts()
    dispatch = SequentialDispatch(by_number)
    dispatch.send(GRANTS)
    assert [each.granted for each in recorders] == [[(7, 1)], [(7, 1)]]
    dispatch.enqueued(7, 1)
    assert recorders[1].granted == [(7, 1)]
    dispatch.enqueued(7, 1)
    assert recorders[1].granted == [(7, 1), (7, 2)]
    assert recorders[0].granted == [(7, 1)]
    dispatch.enqueued(7, 2)
    assert recorders[0].granted == [(7, 1), (7, 3)]


def test_what_is_aborted_holds_up_nobody() -> None:
    recorders, by_number = hosts()
    dispatch = SequentialDispatch(by_number)
    dispatch.send([*GRANTS, (Execution(8, {1: ((0,), ())}), 1)])
    dispatch.forget(7)
    assert recorders[0].granted == [(7, 1), (8, 1)]
    assert recorders[1].granted == [(7, 1)]
