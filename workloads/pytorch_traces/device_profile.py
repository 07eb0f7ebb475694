"""The profile of a rank with a GPU as Chakra nodes.

The CPU's launches follow each other, with the time between them as it was recorded, on whatever threads they are. What
a GPU runs waits for its launch and for what comes before it on its stream. Streams wait for each other:

- A collective waits for the kernel launched before it, unless it was seen to run beside that.
- What is launched behind a ``wait`` waits for the collective that it belongs to. PyTorch records waits in the order of
  their collectives.
- The optimizer waits for all collectives launched before its step.
- Whatever began when something of another stream had just ended, and nothing of its own held it up, waits for that.
"""

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping

from workloads.chakra.wire import ChakraError
from workloads.pytorch_traces.collectives import plain_name
from workloads.pytorch_traces.described_collectives import described, named_groups
from workloads.pytorch_traces.nodes import Collective, NodeWriter
from workloads.pytorch_traces.profile import OPTIMIZER_STEP, Event, Profile

_COMMUNICATES = ("nccl", "rccl", "msccl")
_DESCRIBE = ("record_param_comms", "nccl:", "rccl:")
_SYNCHRONIZES = ("Synchronize",)
_SOON_MICROS = 50.0
"""So much later than what it waits for something begins at most."""


def device_trace(profile: Profile, known: Mapping[str, tuple[int, ...]]) -> bytes:
    """Return the trace of a rank. Raises ChakraError for communication that is not described."""
    return _Device(profile, known).trace()


class _Device:
    def __init__(self, profile: Profile, known: Mapping[str, tuple[int, ...]]) -> None:
        self._profile = profile
        self._describing: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
        for event in profile.cpu:
            if event.name.startswith(_DESCRIBE):
                self._describing[event.thread].append(event)
        launches = {call.correlation: call for call in profile.runtime if call.correlation is not None}
        for event in profile.gpu:
            if event.correlation is None:
                raise ChakraError(f"{profile.where(event.number)}: {event.name[:60]!r} has no correlation")
        self._launch = {
            event.number: launches[event.correlation] for event in profile.gpu if event.correlation in launches
        }
        self._collectives = {event.number: self._described(event) for event in profile.gpu if _communicates(event)}
        groups = named_groups(profile, self._collectives.values(), known)
        self._writer = NodeWriter(groups, profile.num_events, profile.where)
        self._by_end = sorted(profile.gpu, key=lambda event: event.end)
        self._ends = [event.end for event in self._by_end]
        self._written: dict[int, int] = {}
        """The node of each operation of the GPU, by its event."""

    def trace(self) -> bytes:
        """Write calls of the CPU and operations of the GPU in the order in which they began."""
        launching = {call.number for call in self._launch.values()}
        calls = [call for call in self._profile.runtime if call.number in launching or _synchronizes(call)]
        everything = [(call.begin, 0, call) for call in calls]
        for event in self._profile.gpu:
            launch = self._launch.get(event.number)
            everything.append((event.begin if launch is None else max(event.begin, launch.begin), 1, event))
        everything.sort(key=lambda entry: (*entry[:2], entry[2].number))
        cpu = _Calls(self)
        streams: dict[tuple[str, str], int] = {}
        needs = _Needs(self._profile, self._launch, self._collectives)
        for _, is_gpu, event in everything:
            if not is_gpu:
                cpu.add(event)
                continue
            stream = event.stream
            launch = self._launch.get(event.number)
            after = [cpu.nodes[launch.number]] if launch is not None else []
            after += [streams[stream]] if stream in streams else []
            after += [self._written[number] for number in needs.of(event) if number in self._written]
            ended = self._just_ended(event)
            after += [] if ended is None else [self._written[ended]]
            streams[stream] = self._written[event.number] = self._write(event, after)
        cpu.end()
        return self._writer.content()

    def _write(self, event: Event, after: list[int]) -> int:
        collective = self._collectives.get(event.number)
        if collective is None:
            return self._writer.compute(event.duration, after, is_cpu=False, number=event.number)
        return self._writer.communicate(collective, after, event.number)

    def _just_ended(self, event: Event) -> int | None:
        """Return what ended just before this began, on another stream, if nothing of its own held it up until then."""
        at = bisect_right(self._ends, event.begin) - 1
        while at >= 0 and self._by_end[at].number == event.number:
            at -= 1
        if at < 0:
            return None
        last = self._by_end[at]
        launch = self._launch.get(event.number)
        is_held_up = launch is not None and launch.begin > last.end
        if is_held_up or last.stream == event.stream or event.begin - last.end > _SOON_MICROS:
            return None
        return last.number if last.number in self._written else None

    def _described(self, event: Event) -> Collective:
        """Return what a kernel of a library of collectives moves."""
        launch = self._launch.get(event.number)
        describing = [event] if "Collective name" in event.arguments else []
        if not describing and launch is not None:
            describing = [each for each in self._describing[launch.thread] if each.begin <= launch.begin <= each.end]
        found = described(self._profile, describing)
        if found is None:
            problem = "nothing says what it moves; profile with record_shapes=True, or with PyTorch 2.3 or later"
            raise ChakraError(f"{self._profile.where(event.number)}: {event.name[:40]!r}: {problem}")
        return found

    # ---- for the calls of the CPU -----------------------------------------------------------------------------------

    def cpu_node(self, micros: float, after: list[int]) -> int:
        """Write what the CPU does until a call."""
        return self._writer.compute(micros, after, is_cpu=True)

    def ended_by(self, time: float) -> Iterator[int]:
        """Yield the last operation of each stream that had ended by then."""
        seen = set()
        for at in range(bisect_right(self._ends, time) - 1, -1, -1):
            event = self._by_end[at]
            if event.stream not in seen and event.number in self._written:
                seen.add(event.stream)
                yield self._written[event.number]
            if len(seen) >= 8 or time - event.end > 10_000:
                return

    @property
    def begin(self) -> float:
        """When the profile began."""
        return min(events[0].begin for events in (self._profile.cpu, self._profile.runtime) if events)

    @property
    def end(self) -> float:
        """When the last call of the CPU ended."""
        return max((call.end for call in self._profile.runtime), default=self.begin)


class _Calls:
    """The CPU's calls, one after the other."""

    def __init__(self, device: _Device) -> None:
        self._device = device
        self._now = device.begin
        self._last: list[int] = []
        self.nodes: dict[int, int] = {}

    def add(self, call: Event) -> None:
        """Add a call that launches something, or waits for the GPU."""
        waits = _synchronizes(call)
        until = call.begin if waits else call.end
        node = self._device.cpu_node(max(0.0, until - self._now), self._last)
        self._now = max(self._now, call.end)
        self.nodes[call.number] = node
        self._last = [node, *self._device.ended_by(call.end)] if waits else [node]

    def end(self) -> None:
        """Add what the CPU did behind its last call."""
        self._device.cpu_node(max(0.0, self._device.end - self._now), self._last)


class _Needs:
    """What operations of the GPU wait for on other streams, by their events."""

    def __init__(self, profile: Profile, launch: Mapping[int, Event], collectives: Collection[int]) -> None:
        self._found: defaultdict[int, list[int]] = defaultdict(list)
        launched = sorted(((launch[each.number].begin, each) for each in profile.gpu if each.number in launch), key=_at)
        marks = [(each.begin, each) for each in profile.cpu if _waits(each) or each.name.startswith(OPTIMIZER_STEP)]
        order = sorted([*launched, *marks], key=_at)
        not_awaited: deque[Event] = deque()
        all_launched: list[Event] = []
        pending: list[Event] = []
        computed: Event | None = None
        for _, event in order:
            if event.number in collectives:
                if computed is not None and computed.end <= event.begin:
                    self._found[event.number].append(computed.number)
                not_awaited.append(event)
                all_launched.append(event)
            elif event.category == "cpu_op":
                pending += [not_awaited.popleft()] if not_awaited else []
            elif event.category == "user_annotation":
                pending += all_launched
                all_launched = []
            else:
                self._found[event.number] += [each.number for each in pending if each.end <= event.begin]
                pending = []
                computed = event if event.category == "kernel" else computed

    def of(self, event: Event) -> list[int]:
        """Return what an operation waits for."""
        return self._found.get(event.number, [])


def _at(entry: tuple[float, Event]) -> float:
    return entry[0]


def _communicates(event: Event) -> bool:
    return event.category == "kernel" and event.name.lower().startswith(_COMMUNICATES)


def _synchronizes(call: Event) -> bool:
    return call.name.endswith(_SYNCHRONIZES) or call.name in ("cudaMemcpy", "hipMemcpy")


def _waits(event: Event) -> bool:
    return event.name == "record_param_comms" and plain_name(str(event.arguments.get("Collective name"))) == "wait"
