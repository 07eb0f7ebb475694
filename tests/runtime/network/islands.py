"""Programs that are traced and lowered for islands of which nothing runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hostlib import Nic
from runtime.arrays import ArraySpec
from runtime.functions import timer
from runtime.lowering.assign import AT_CLIENT, Layout, Placement
from runtime.lowering.subprograms import LoweredProgram, lower
from runtime.mapping import pmap
from runtime.network.transfers import Template, template
from runtime.pipelines import Schedule, Stage, training_step
from runtime.tracing import TracedProgram, program


class NoRuntime:
    """What runs nothing."""

    def run(self, traced: TracedProgram, arguments: Sequence[Any]) -> list[Any]:
        raise NotImplementedError


RUNTIME = NoRuntime()


@dataclass(frozen=True)
class Slice:
    number: int
    size: int
    runtime: NoRuntime = RUNTIME


@dataclass(frozen=True)
class Shape:
    """An array of which only the spec is known."""

    spec: ArraySpec


def array(*shape: int) -> Shape:
    return Shape(ArraySpec(shape, "float32"))


def slices(*hosts_of: Sequence[int]) -> dict[int, Placement]:
    """One slice for each sequence of hosts, on an island of its own, with a device on each host named."""
    found = {}
    for number, hosts in enumerate(hosts_of):
        devices = tuple(hosts[:place].count(host) for place, host in enumerate(hosts))
        found[number] = Placement(f"i{number}", tuple(hosts), devices)
    return found


def devices(placements: Mapping[int, Placement]) -> list[Slice]:
    return [Slice(number, len(placement.hosts)) for number, placement in placements.items()]


def lowered(
    call: Callable[..., Any],
    arguments: Sequence[Any],
    placements: Mapping[int, Placement],
    layouts: Sequence[Layout] | None = None,
) -> tuple[LoweredProgram, Callable[[int], float]]:
    """Trace and lower a function of timers; also return how long each node takes."""
    found: list[TracedProgram] = []

    class Recorder(NoRuntime):
        def run(self, traced: TracedProgram, arguments: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - runs nothing
            found.append(traced)
            return list(traced.program.results)

    recorder = Recorder()
    of = [Slice(each.number, each.size, recorder) for each in devices(placements)]
    program(lambda *given: call(of, *given))(*arguments)
    (traced,) = found
    made = lower(traced.program, placements, layouts or [AT_CLIENT] * len(traced.program.arguments))

    def seconds(node: int) -> float:
        return traced.functions[traced.program.call(node).function].duration_s or 0.0

    return made, seconds


def nics(placements: Mapping[int, Placement]) -> dict[int, Nic]:
    return {host: Nic(f"h{host}") for placement in placements.values() for host in placement.hosts}


def template_of(
    call: Callable[..., Any],
    arguments: Sequence[Any],
    placements: Mapping[int, Placement],
    layouts: Sequence[Layout] | None = None,
) -> Template | None:
    return template(*lowered(call, arguments, placements, layouts), nics(placements))


def pipeline(schedule: Schedule, stages: int, micro_batches: int, forward_s: float, backward_s: float) -> Template:
    """A pipeline of stages on one device and one island each; the last one takes a pass forward and backward at once.

    A micro-batch has 400 bytes.
    """
    placements = slices(*([stage] for stage in range(stages)))

    def step(of: Sequence[Slice], *given: Any) -> Any:
        made = [_stage(each, is_last=each.number == stages - 1, durations_s=(forward_s, backward_s)) for each in of]
        parameters, inputs, targets = given[:stages], given[stages:-micro_batches], given[-micro_batches:]
        return training_step(made, [[each] for each in parameters], inputs, targets, schedule)

    arguments = [array(10)] * stages + [array(100)] * 2 * micro_batches
    found = template_of(step, arguments, placements)
    assert found is not None
    return found


def _stage(on: Slice, *, is_last: bool, durations_s: tuple[float, float]) -> Stage:
    forward_s, backward_s = durations_s
    loss = ArraySpec((1,), "float32")
    if is_last:
        backward = timer(forward_s + backward_s, lambda parameters, x, *_: (x, loss, parameters))
        update = timer(1e-6, lambda parameters, loss, *_: (loss, parameters))
    else:
        backward = timer(backward_s, lambda parameters, x, *_: (x, parameters))
        update = timer(1e-6)
    forward = timer(forward_s, lambda _, x: x)
    return Stage(*(pmap(each, devices=on) for each in (forward, backward, update)))
