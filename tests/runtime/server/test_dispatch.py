from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from runtime.server.dispatch import ParallelDispatch, SequentialDispatch
from runtime.server.hosts import Host


@dataclass
class Recorder:
    """A host that notes what it is told."""

    granted: list[tuple[int, int]] = field(default_factory=list)

    def grant(self, grants: Iterable[tuple[int, int, int]]) -> None:
        self.granted += [(execution, first) for execution, first, _ in grants]


@dataclass(frozen=True)
class Execution:
    number: int


@dataclass(frozen=True)
class Stretch:
    first: int
    last: int
    hosts: Sequence[int]
    makers: Sequence[int]


@dataclass(frozen=True)
class Gang:
    execution: Execution
    stretch: Stretch


def gang(execution: int, node: int, hosts: Sequence[int], makers: Sequence[int]) -> Gang:
    return Gang(Execution(execution), Stretch(node, node, hosts, makers))


GRANTS = [gang(7, 1, (0, 1), ()), gang(7, 2, (1,), (1,)), gang(7, 3, (0,), (2,))]


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
    dispatch.send([*GRANTS, gang(8, 1, (0,), ())])
    dispatch.forget(7)
    assert recorders[0].granted == [(7, 1), (8, 1)]
    assert recorders[1].granted == [(7, 1)]
