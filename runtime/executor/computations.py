"""What a device runs: a loaded function with one shard of inputs."""

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from runtime import sources
from runtime.arrays import ArraySpec
from runtime.collectives import within
from runtime.errors import InputEndedError
from runtime.executor.groups import ShardGroup
from runtime.executor.inputs import InputBatches
from runtime.executor.reserved import Held
from runtime.messages import Failure, RegisterFunction
from runtime.program import Call
from runtime.transport.arrays import LEAST_BYTES

Array = np.ndarray[Any, Any]

_PACKAGE = str(Path(__file__).parent.parent)
_UNKNOWN_S = 1.0
"""A function that has not run yet is taken to be long, so that it does not hold up the loop."""
_LEARNING = 0.2
"""How much of the mean duration the newest run is."""
_WARM_UP_S = 0.1
"""What a first run takes longer is taken to be spent on loading, connecting and allocating; the second run tells."""
_NEWS = 0.1
"""By how much of itself the mean must have changed before the server is told."""


class Done(NamedTuple):
    """How a computation ended."""

    outputs: Sequence[Array] | None
    failure: Failure | None
    duration_s: float


class Feed(NamedTuple):
    """An input that is made on the same device: its position, and the node, shard and output that it is.

    ``execution`` is that which makes it, if it is another one.
    """

    position: int
    node: int
    shard: int
    output: int
    execution: int | None = None


@dataclass(eq=False, slots=True)
class Computation:
    """One shard of a call, in one execution. It waits for its ``missing`` inputs, and for memory, until ``ready_s``.

    ``failure`` is that of an input: the computation does not run then, and fails in its turn. ``group`` are the shards
    of a collective call. ``feeds`` are inputs that are made on the same device. ``is_told`` says whether the loop must
    hear at once that it has ended: an output goes elsewhere, or memory is given back. ``done`` and ``awaited`` are of
    the thread that runs it (``workers``).
    """

    client: int
    execution: int
    node: int
    shard: int
    device: int
    function: "LoadedCall"
    inputs: list[Array]
    missing: int
    ready_s: float = 0.0
    failure: Failure | None = None
    is_enqueued: bool = False
    group: ShardGroup | None = None
    held: Held | None = None
    feeds: Sequence[Feed] = ()
    is_told: bool = True
    done: Done | None = None
    awaited: "Sequence[tuple[int, Computation, int]]" = ()
    is_running: bool = False

    @property
    def waits_for_shards(self) -> bool:
        """Whether other shards of its call compute together with it."""
        return self.group is not None and self.group.size > 1


class Stated(NamedTuple):
    """What a shard of an output must be."""

    spec: ArraySpec
    dtype: np.dtype[Any]

    def is_met_by(self, array: Array) -> bool:
        """Return whether an array is so."""
        return bool(self.spec.is_met_by(array.shape) and array.dtype == self.dtype)


class LoadedFunction:
    """A function of a client, made ready to run; if that failed, every run fails with the reason.

    Large outputs are made within ``memory``.
    """

    def __init__(
        self,
        registered: RegisterFunction,
        number: int = 0,
        memory: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.number = number
        self.memory = memory
        self.name = registered.name
        self.library = registered.library
        self.is_timer = registered.library == "timer"
        self.is_collective = registered.is_collective
        self.seconds = registered.duration_s if registered.duration_s is not None else _UNKNOWN_S
        self.is_news = False
        self._told_s = self.seconds
        self._num_runs = 0
        self._failure: Failure | None = None
        self._call: Callable[..., Any] | None = None
        if registered.description is not None:
            try:
                self._call = _loaded(registered.library, registered.description)
            except Exception as error:  # whatever the client's source raises is the client's
                self._failure = Failure("ComputationError", f"{self.name}: cannot be loaded: {_text(error)}")

    def run(self, inputs: Sequence[Array], outputs: Sequence[Stated], location: str, group: ShardGroup | None) -> Done:
        """Run the function on a shard; whatever it raises becomes a failure."""
        if self._failure is not None:
            return Done(None, self._failure, 0.0)
        if self.is_timer:
            return Done([_zeros(each.spec) for each in outputs], None, self.seconds)
        assert self._call is not None
        started_s = time.perf_counter()
        try:
            made = within(group, self._call, inputs)
        except InputEndedError as error:
            failure = Failure(InputEndedError.__name__, f"{self.name}: {error}")
            return Done(None, failure, time.perf_counter() - started_s)
        except BaseException as error:  # sys.exit() in a function must not end the thread of its device
            message = f"{self.name} raised {_text(error)}\nIt was called at\n  {location}"
            return Done(None, Failure("ComputationError", message), time.perf_counter() - started_s)
        duration_s = time.perf_counter() - started_s
        self._learn(duration_s)
        wrong = _mismatch(made, outputs)
        if wrong is not None:
            message = f"{self.name}: {wrong}\nIt was called at\n  {location}"
            return Done(None, Failure("ComputationError", message), duration_s)
        return Done(made, None, duration_s)

    def _learn(self, duration_s: float) -> None:
        if self._num_runs == 0:
            self.seconds = min(duration_s, _WARM_UP_S)
        elif self._num_runs == 1:
            self.seconds = duration_s
        else:
            self.seconds += _LEARNING * (duration_s - self.seconds)
        self._num_runs += 1
        if abs(self.seconds - self._told_s) > _NEWS * self._told_s:
            self._told_s = self.seconds
            self.is_news = True


class LoadedCall:
    """A call of a program with its function; ``unbounded`` are the outputs of which no bound is known."""

    def __init__(self, call: Call, function: LoadedFunction) -> None:
        self.function = function
        specs = tuple(each.sharding.shard_spec(each.spec) for each in call.outputs)
        self._outputs = tuple(Stated(spec, np.dtype(spec.dtype)) for spec in specs)
        self._location = call.location
        self._guards = call.guards
        self._is_large = any(spec.size_bytes >= LEAST_BYTES or not spec.is_bounded for spec in specs)
        self.unbounded = frozenset(number for number, spec in enumerate(specs) if not spec.is_bounded)

    @property
    def name(self) -> str:
        """What the user calls the function."""
        return self.function.name

    @property
    def is_timer(self) -> bool:
        """Whether it occupies the device without computing."""
        return self.function.is_timer

    @property
    def seconds(self) -> float:
        """How long a shard takes, as far as known."""
        return self.function.seconds

    @property
    def is_collective(self) -> bool:
        """Whether its shards wait for each other."""
        return self.function.is_collective

    @property
    def is_guarded(self) -> bool:
        """Whether predicates among its inputs say if there is anything to compute."""
        return bool(self._guards)

    def is_skipped(self, inputs: Sequence[Array]) -> bool:
        """Return whether a predicate among the inputs says that there is nothing to compute."""
        return any(bool(given) is not when for given, when in zip(inputs, self._guards, strict=False))

    def run(self, inputs: Sequence[Array], group: ShardGroup | None = None) -> Done:
        """Run one shard."""
        if self._guards:
            if self.is_skipped(inputs):
                return Done([_zeros(each.spec) for each in self._outputs], None, 0.0)
            inputs = inputs[len(self._guards) :]
        with self.function.memory() if self._is_large else nullcontext():
            return self.function.run(inputs, self._outputs, self._location, group)


def _loaded(library: str, description: Mapping[str, Any]) -> Callable[..., Any]:
    call = sources.loaded(description)
    if library == "torch":
        from runtime.executor.torch_calls import on_arrays

        return on_arrays(call)

    if library == "input":
        return InputBatches(call)

    def numpy_call(*inputs: Array) -> list[Array]:
        made = call(*inputs)
        return [np.asarray(each, order="C") for each in (made if isinstance(made, tuple | list) else (made,))]

    return numpy_call


def _mismatch(made: Sequence[Array], outputs: Sequence[Stated]) -> str | None:
    """Say how what was returned differs from what was stated."""
    if len(made) == len(outputs) and all(map(Stated.is_met_by, outputs, made)):
        return None
    stated = ", ".join(str(each.spec) for each in outputs)
    got = ", ".join(f"{array.dtype.name}[{','.join(map(str, array.shape))}]" for array in made)
    return f"stated that it returns ({stated}), and returned ({got})"


_zeros_by_spec: dict[ArraySpec, Array] = {}


def _zeros(spec: ArraySpec) -> Array:
    """Return zeros that all timers share; nobody writes into arrays. There are no rows where no bound is known."""
    found = _zeros_by_spec.get(spec)
    if found is None:
        shape = spec.shape if spec.is_bounded else (0, *spec.shape[1:])
        found = _zeros_by_spec[spec] = np.zeros(shape, spec.dtype)
    return found


def _text(error: BaseException) -> str:
    """Return an exception with the user's part of its traceback."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(_PACKAGE)]
    lines = traceback.format_list(frames)
    what = "".join(traceback.format_exception_only(error)).strip()
    return f"{what}\n{''.join(lines)}".rstrip()
