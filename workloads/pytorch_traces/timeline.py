"""A rank whose computing, launching and waiting follow each other on one line of time.

It computes from one mark to the next. A collective begins at its mark and takes what the network gives it. A stall is
no computing: what comes behind it waits for the collectives that it names.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from workloads.pytorch_traces.nodes import Collective, NodeWriter, Where


@dataclass(frozen=True, slots=True)
class Issued:
    """The rank begins a collective; ``number`` is that of its node."""

    at_micros: float
    number: int
    collective: Collective


@dataclass(frozen=True, slots=True)
class Stall:
    """From begin to end the rank waits for the collectives with these numbers."""

    begin_micros: float
    end_micros: float
    numbers: tuple[int, ...]


def timeline_trace(
    begin_micros: float,
    end_micros: float,
    issued: Sequence[Issued],
    stalls: Sequence[Stall],
    groups: Mapping[str, Iterable[int]],
    first_free: int,
    where: Where,
) -> bytes:
    """Return the trace of a rank that begins and ends at these times. Nothing ends before all of its collectives.

    Raises ChakraError, which names the place of a node ``where`` it is, for values that a trace cannot have.
    """
    writer = NodeWriter(groups, first_free, where)
    marks: list[tuple[float, int, Issued | Stall]] = [(each.at_micros, 0, each) for each in issued]
    marks += [(each.begin_micros, 1, each) for each in stalls]
    marks.sort(key=lambda mark: mark[:2])
    now, before = begin_micros, tuple[int, ...]()
    open_numbers: dict[int, None] = {}
    for at_micros, _, mark in marks:
        if at_micros > now:
            before = (writer.compute(at_micros - now, before, is_cpu=False),)
            now = at_micros
        if isinstance(mark, Issued):
            open_numbers[writer.communicate(mark.collective, before, mark.number)] = None
            continue
        awaited = [number for number in mark.numbers if number in open_numbers]
        before = (*before, *awaited)
        now = max(now, mark.end_micros)
        for number in awaited:
            del open_numbers[number]
    writer.compute(max(end_micros - now, 1.0), (*before, *open_numbers), is_cpu=False)
    return writer.content()
