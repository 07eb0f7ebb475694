"""The controller's configuration: one frozen object, read from a YAML file.

Example::

    listen: 127.0.0.1:4790
    topology: {kind: dumbbell, hosts_per_side: 2, host_link_gbps: 400, bottleneck_gbps: 100}
    switches:
      - {name: t0, address: "127.0.0.1:9559"}
      - {name: t1, address: "127.0.0.1:9559", device_id: 2}
    policy: crux
    database: controller.db

Unknown keys are refused. ``load_config`` reports all problems of a file at once.
"""

import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from controller.access.options import UNLIMITED, JwtOptions, Quotas
from controller.access.tls_files import ServerTls, TlsFiles
from controller.errors import DaemonError
from controller.links.damping import Damping
from controller.profiling.options import ProfilingOptions
from hostlib.addresses import check_host_port, check_server, is_local, socket_path
from hostlib.wire.int_md import UTILISATION_WINDOW_US
from policies.registry import DEFAULT_POLICY, PolicySource
from topologies.bounds import at_least
from topologies.documents import DocumentError, read_document
from topologies.ecmp import FabricHash
from topologies.files import shown_path
from topologies.names import PlainName
from topologies.problems import problem_of_error
from topologies.specification import Topology
from topologies.steering import Steering

_PIPELINE = Path(__file__).resolve().parent.parent / "p4src" / "build"


HostPort = Annotated[str, AfterValidator(check_host_port)]
"""The address of a server: a host name or an IP address, and a port."""
ListenAddress = Annotated[str, AfterValidator(partial(check_server, first_port=0))]
"""The address of a listener: a host and a port, 0 for any that is free, or a Unix socket."""


_Positive = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False), at_least(1e-6)]


class SwitchAddress(BaseModel):
    """The P4Runtime address of a switch of the topology, and its gNMI address if that differs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    address: HostPort
    device_id: Annotated[int, Field(ge=1, lt=1 << 64)] = 1
    gnmi: HostPort | None = None


class LeadershipConfig(BaseModel):
    """The lease by which one of several controllers leads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lease_s: Annotated[float, Field(ge=0.1, le=3600)] = 5.0
    """How long after the leader's last renewal another controller may lead."""
    name: Annotated[str, Field(min_length=1, max_length=256)] = Field(default_factory=socket.gethostname)
    """The name that operators see."""


class RecordConfig(BaseModel):
    """The length of the record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    plans: Annotated[int, Field(ge=1)] = 10_000
    """How many of the last Plans are kept."""
    audit_days: _Positive = 30.0
    """For how many days the requests to switches are kept."""


class ControllerConfig(BaseModel):
    """The configuration of a controller."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    listen: ListenAddress = "127.0.0.1:4790"
    """The address of the gRPC services."""
    tls: ServerTls | None = None
    """TLS of these services; needed where the address can be reached from the network."""
    tokens: Path | None = None
    """A file of tokens, each with an identity; read again when it changes."""
    jwt: JwtOptions | None = None
    """The key that verifies signed tokens."""
    quotas: Quotas | None = None
    """What every tenant may hold; None: the defaults where callers have identities, else no limits."""
    tenants: Mapping[PlainName, Quotas] = Field(default_factory=dict)
    """The quotas of single tenants."""
    agents: bool = False
    """Whether everybody may report probes, where callers have no identities."""
    insecure: bool = False
    """Whether plain text is allowed on addresses that can be reached from the network."""
    topology: Topology
    switches: tuple[SwitchAddress, ...]
    hash: FabricHash = FabricHash.KNOWN
    """Whether the hash of the switches is known."""
    hash_seed: int = 1
    """The seed from which every switch has a hash of its own."""
    policy: PolicySource = DEFAULT_POLICY
    """The name of a registered policy, or ``module:attribute``, which the controller imports."""
    steering: Steering = Steering.RULE
    """The means by which flows leave the path of the hash."""
    seed: int = 1
    """The seed of the policy's randomness."""
    num_levels: Annotated[int, Field(ge=1, le=8)] = 8
    lease_s: _Positive = 30.0
    """The lease of a job: it is removed this long after its last heartbeat."""
    policy_time_limit_s: _Positive | None = 30.0
    """A longer decision is abandoned, and the Plan before stays in force; None: no limit."""
    switch_tls: TlsFiles | None = None
    """The files for TLS with switches, P4Runtime and gNMI; None: plain text."""
    read_back_s: Annotated[float, Field(ge=0.1, allow_inf_nan=False)] | None = 30.0
    """How often every switch is read back, and what somebody else has changed is repaired; None: never."""
    election_id: Annotated[int, Field(ge=1, lt=1 << 128)] = (1 << 64) + 1
    pipeline: Path = _PIPELINE
    """The folder of the compiled P4 program."""
    database: Annotated[str, Field(min_length=1)] | None = None
    """A path (SQLite) or an SQLAlchemy URL; None: no state outlives the process."""
    record: RecordConfig = RecordConfig()
    utilisation_window_us: _Positive = UTILISATION_WINDOW_US
    """The length of the windows in which switches count bytes."""
    reads_ports: bool = True
    """Whether the controller asks switches by gNMI which ports are up."""
    damping: Damping | None = Damping()
    """Damping of cables that flap; None: a cable that is up is used."""
    profiling: ProfilingOptions = ProfilingOptions()
    """Measurement of jobs that report no profile."""
    bytes_per_count: _Positive = 1.0
    """The bytes for which one byte that switches count stands: more than 1 where rates and sizes are scaled down."""
    leadership: LeadershipConfig | None = None
    """Set where several controllers share the database; None: this is the only one."""

    @property
    def has_identities(self) -> bool:
        """Whether callers have to say who they are."""
        return self.tokens is not None or self.jwt is not None or (self.tls is not None and self.tls.ca is not None)

    def quotas_of(self, tenant: str) -> Quotas:
        """The quotas of a tenant, or of an identity that has none (empty)."""
        return self.tenants.get(tenant) or self.quotas or (Quotas() if self.has_identities else UNLIMITED)

    @model_validator(mode="after")
    def _strangers_are_kept_out(self) -> Self:
        if self.tls is None and not self.insecure and not is_local(self.listen):
            raise ValueError(
                f"listen: {self.listen} can be reached from the network: set tls (docs/security.md), or write down"
                " insecure: true"
            )
        if self.tls is not None and socket_path(self.listen) is not None:
            raise ValueError(f"tls: not possible at {self.listen}; a Unix socket needs none")
        if self.tls is not None and not self.has_identities:
            raise ValueError("tls: needs ca, tokens or jwt, by which callers show who they are")
        if self.agents and self.has_identities:
            raise ValueError("agents: has no meaning where callers have identities; give agents the role agent")
        return self

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

    @model_validator(mode="after")
    def _switches_are_reached_safely(self) -> Self:
        far = [
            switch.name for switch in self.switches for at in (switch.address, switch.gnmi) if at and not is_local(at)
        ]
        if far and self.switch_tls is None and not self.insecure:
            raise ValueError(
                f"switches: {far[0]} is reached over the network: set switch_tls (docs/security.md), or write down"
                " insecure: true"
            )
        return self


class ConfigError(DaemonError, DocumentError):
    """A configuration that cannot be used; ``messages`` has one line per problem: file, key path and problem."""


def load_config(path: Path) -> ControllerConfig:
    """Read the configuration from a YAML file. Raises ConfigError with all its problems."""
    try:
        document = read_document(path)
    except DocumentError as error:
        raise ConfigError(error.messages) from error
    problems = list(document.problems)
    try:
        config = ControllerConfig.model_validate(document.contents)
    except ValidationError as error:
        problems += [problem_of_error(fault, document.contents, ControllerConfig) for fault in error.errors()]
    if problems:
        raise ConfigError(tuple(f"{shown_path(path)}: {problem}" for problem in problems))
    return config
