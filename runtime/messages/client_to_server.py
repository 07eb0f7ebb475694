"""What clients tell the server: what to run and to keep, and what an operator asks for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtime.program import Program
from runtime.resources.slices import Constraints
from runtime.scheduling.gangs import MAX_COST_S
from runtime.substrates.interface import NewHost


@dataclass(frozen=True, slots=True)
class AddSlice:
    """Asks for a virtual slice in a set that the client numbers; the answer is SliceAdded or Refused."""

    request: int
    device_set: int
    devices: int | None
    shape: tuple[int, ...] | None
    island: str | None
    constraints: Constraints


@dataclass(frozen=True, slots=True)
class RegisterFunction:
    """Makes a function known. ``description`` is what ``sources.described`` returns; timers have none."""

    number: int
    name: str
    library: str
    duration_s: float | None
    description: Mapping[str, Any] | None
    is_collective: bool = False

    def __post_init__(self) -> None:
        if self.duration_s is not None and not 0 <= self.duration_s <= MAX_COST_S:
            raise ValueError(f"{self.name}: duration_s: must be from 0 to {MAX_COST_S:g}, not {self.duration_s}")


@dataclass(frozen=True, slots=True)
class RegisterProgram:
    """Makes a program known; its calls name functions by their place in ``functions``."""

    number: int
    program: Program
    functions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Execute:
    """Runs a program. There is no answer: results are asked for by their handles.

    ``arguments`` are handles, or -1 for arguments whose data are in the payload, one after another. ``results`` are the
    handles that the results get, which the client numbers itself. ``need_ns`` is in how many nanoseconds they are
    needed, or -1 where that is not known. ``is_awaited`` says that the client waits for one of them, not for its data.
    """

    program: int
    arguments: tuple[int, ...]
    results: tuple[int, ...]
    need_ns: int = -1
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """The client no longer needs these handles."""

    handles: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Asks for an array, or only for its being there; each shard comes as a Fetched, or there is one FetchFailed."""

    request: int
    handle: int
    data: bool


@dataclass(frozen=True, slots=True)
class AskStatus:
    """Asks for the state of the runtime, with what devices ran if ``trace`` says so; the answer is Status."""

    request: int
    trace: bool


@dataclass(frozen=True, slots=True)
class Manage:
    """Asks an operator's favour: ``action`` is suspend, resume or migrate. The answer is Managed or Refused.

    ``client`` is a client's label, or the name that all of its connections share; ``island`` is where migrate moves it.
    """

    request: int
    action: str
    client: str
    island: str | None


@dataclass(frozen=True, slots=True)
class AddHost:
    """Asks an operator's favour: a host that joins an island. The answer is HostAdded or Refused.

    ``is_by_hand`` says that who asks starts the executor; HostAdmitted says with which settings.
    """

    request: int
    host: NewHost
    is_by_hand: bool


@dataclass(frozen=True, slots=True)
class RemoveHost:
    """Asks an operator's favour: a host that leaves, once nothing needs it. The answer is HostRemoved or Refused."""

    request: int
    host: int


@dataclass(frozen=True, slots=True)
class Publish:
    """Lets others read arrays, nested as ``structure`` says, by a name. The answer is Done or Refused."""

    request: int
    name: str
    handles: tuple[int, ...]
    structure: Any


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Ends that others can open what was published by a name. The answer is Done or Refused."""

    request: int
    name: str


@dataclass(frozen=True, slots=True)
class OpenPublished:
    """Asks for handles of what somebody published by a name; the answer is Opened or Refused."""

    request: int
    name: str
