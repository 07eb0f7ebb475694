"""The controller's configuration: one frozen object, unknown keys refused."""

import re
import socket
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from controller.links.damping import Damping
from controller.profiling.options import ProfilingOptions
from controller.record_config import RecordConfig
from hostlib.wire.int_md import UTILISATION_WINDOW_US
from policies.registry import DEFAULT_POLICY, PolicySource
from topologies.ecmp import FabricHash
from topologies.specification import Topology
from topologies.steering import Steering

_PIPELINE = Path(__file__).resolve().parent.parent / "p4src" / "build"


_HOST_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(\d{1,5})", re.ASCII)
_LAST_PORT = 0xFFFF


def check_host_port(address: str) -> str:
    """The address, where it is HOST:PORT; IPv6 addresses stand in brackets. Raises ValueError where it is not."""
    matched = _HOST_PORT.fullmatch(address)
    if matched is None or int(matched[1]) > _LAST_PORT:
        raise ValueError(f"expected HOST:PORT with a port up to {_LAST_PORT}")
    return address


HostPort = Annotated[str, AfterValidator(check_host_port)]
"""Where something listens, or is to listen: a name or an address, and a port (0 for any that is free)."""


class SwitchAddress(BaseModel):
    """Where a switch of the topology answers P4Runtime, and where gNMI if that is another address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    address: HostPort
    device_id: Annotated[int, Field(ge=1, lt=1 << 64)] = 1
    gnmi: HostPort | None = None


class LeadershipConfig(BaseModel):
    """How a controller takes turns with others: ``lease_s`` after its last sign of life another may lead.

    ``name`` tells people which one it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    lease_s: Annotated[float, Field(ge=0.1, le=3600)] = 5.0
    name: Annotated[str, Field(min_length=1, max_length=256)] = Field(default_factory=socket.gethostname)


class ControllerConfig(BaseModel):
    """All that the controller process is told.

    ``listen`` is the address of its gRPC service (port 0: any free one); ``hash`` says whether the switches' is
    known, ``hash_seed`` gives every switch its own; ``policy`` is a registered one, or ``module:attribute``, which the
    controller imports; ``seed`` is the policies' randomness; a decision that takes longer than ``policy_time_limit_s``
    is abandoned and the Plan before it stays in force (None: there is no limit); ``steering`` is what makes flows leave
    the paths of the hash; ``pipeline`` is the folder of the compiled P4 program, ``utilisation_window_us`` how long the
    switches' windows are in which they count bytes.
    ``reads_ports``: the switches are asked by gNMI which ports are up; ``damping`` is for cables that flap (None: one
    that is up is used). ``database`` is a path or an SQLAlchemy URL (None: nothing outlives the process), ``record``
    how long decisions stay there. ``leadership`` is what several controllers on it have (None: it is the only one).
    ``profiling`` says how jobs that tell nothing of themselves are measured; ``bytes_per_count`` is what a byte that
    switches count of them stands for, more than 1 where rates and sizes are divided.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    listen: HostPort = "127.0.0.1:4790"
    topology: Topology
    switches: tuple[SwitchAddress, ...]
    hash: FabricHash = FabricHash.KNOWN
    hash_seed: int = 1
    policy: PolicySource = DEFAULT_POLICY
    steering: Steering = Steering.RULE
    seed: int = 1
    num_levels: Annotated[int, Field(ge=1, le=8)] = 8
    lease_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0
    policy_time_limit_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = 30.0
    election_id: Annotated[int, Field(ge=1, lt=1 << 128)] = (1 << 64) + 1
    pipeline: Path = _PIPELINE
    database: Annotated[str, Field(min_length=1)] | None = None
    record: RecordConfig = RecordConfig()
    utilisation_window_us: Annotated[float, Field(gt=0, allow_inf_nan=False)] = UTILISATION_WINDOW_US
    reads_ports: bool = True
    damping: Damping | None = Damping()
    profiling: ProfilingOptions = ProfilingOptions()
    bytes_per_count: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    leadership: LeadershipConfig | None = None

    @model_validator(mode="after")
    def _leadership_has_what_it_needs(self) -> Self:
        if self.leadership is not None and self.database is None:
            raise ValueError("leadership: needs the database that the controllers share")
        return self

    @model_validator(mode="after")
    def _switches_are_those_of_the_topology(self) -> Self:
        names = [switch.name for switch in self.switches]
        expected = self.topology.build().switches
        if unknown := sorted(set(names) - set(expected)):
            raise ValueError(f"switches: not in the topology: {', '.join(unknown)}")
        if missing := sorted(set(expected) - set(names)):
            raise ValueError(f"switches: no address for {', '.join(missing)}")
        if len(names) != len(set(names)):
            raise ValueError("switches: a name is listed twice")
        return self
