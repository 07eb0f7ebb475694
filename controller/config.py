"""The controller's configuration: one frozen object, read from a YAML file.

Example::

    listen: 127.0.0.1:4790
    topology: {kind: dumbbell, hosts_per_side: 2, host_link_gbps: 400, bottleneck_gbps: 100}
    switches:
      - {name: t0, address: "127.0.0.1:9559"}
      - {name: t1, address: "127.0.0.1:9559", device_id: 2}
    policy: crux
    database: controller.db

Unknown keys are refused. ``topology`` may be the name of a fabric file, relative to this one. ``load_config`` reports
all problems of a file at once.
"""

import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from controller.access.options import UNLIMITED, JwtOptions, Quotas
from controller.access.tls_files import ServerTls, TlsFiles
from controller.errors import DaemonError
from controller.links.damping import Damping
from controller.profiling.options import ProfilingOptions
from controller.switch_addresses import (
    OpenFlowConfig,
    SwitchAddress,
    address_of,
    check_certificate_names,
    check_local,
    check_openflow_local,
)
from hostlib.addresses import check_host_port, check_server, is_local, socket_path
from hostlib.wire.int_md import UTILISATION_WINDOW_US
from policies.registry import DEFAULT_POLICY, PolicySource
from topologies.bounds import at_least
from topologies.documents import DocumentError, read_configuration
from topologies.ecmp import FabricHash
from topologies.fabric import Control
from topologies.fabric_specification import FabricSpecification
from topologies.logs import LogFormat, LogLevel
from topologies.names import PlainName
from topologies.problems import Problem, as_mapping, problem_of_error
from topologies.specification import Topology
from topologies.steering import Steering

_PIPELINE = Path(__file__).resolve().parent.parent / "p4src" / "build"


ListenAddress = Annotated[str, AfterValidator(partial(check_server, first_port=0))]
"""The address of a listener: a host and a port, 0 for any that is free, or a Unix socket."""


_Positive = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False), at_least(1e-6)]


class BaseRouting(StrEnum):
    """Who fills the tables by which switches route what no rule steers."""

    OURS = "ours"
    OTHER = "other"


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


class WebConfig(BaseModel):
    """The HTTP address of health, metrics and the page."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    listen: Annotated[str, AfterValidator(partial(check_host_port, first_port=0))] = "127.0.0.1:4791"
    tls: ServerTls | None = None
    """TLS there; None: that of the gRPC services, where these have one."""


class LogConfig(BaseModel):
    """The log on stderr. ``trainyard controller`` has options for both keys, which win.

    ``controller.events.log_from`` changes the level of a controller that runs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: LogLevel = LogLevel.INFO
    """The least level of what is logged."""
    format: LogFormat = LogFormat.TEXT
    """Text for people, or one JSON object in a line."""


class ControllerConfig(BaseModel):
    """The configuration of a controller."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    listen: ListenAddress = "127.0.0.1:4790"
    """The address of the gRPC services."""
    tls: ServerTls | None = None
    """TLS of these services; needed where the address can be reached from the network."""
    web: WebConfig | None = None
    """Where health, metrics and the page are served; None: nowhere."""
    log: LogConfig = LogConfig()
    """What is logged, and how."""
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
    switches: tuple[SwitchAddress, ...] | None = None
    """Where switches are; None: where the topology says, if it is of kind ``fabric``."""
    base_routing: BaseRouting = BaseRouting.OURS
    """Whether the controller writes base routing, or reads what another client of the switches has written."""
    hash: FabricHash = FabricHash.KNOWN
    """Whether the hash of the switches is known; unknown where the key is left out and a switch speaks OpenFlow."""
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
    openflow: OpenFlowConfig = OpenFlowConfig()
    """How switches that speak OpenFlow reach the controller."""
    read_back_s: Annotated[float, Field(ge=0.1, allow_inf_nan=False)] | None = 30.0
    """How often every switch is read back, and what somebody else has changed is repaired; None: never."""
    election_id: Annotated[int, Field(ge=1, lt=1 << 128)] = (1 << 64) + 1
    pipeline: Path = _PIPELINE
    """The folder of the compiled P4 programs."""
    device_config: Path | None = None
    """What a Tofino switch loads that runs another program; None: nothing, it runs ours already."""
    database: Annotated[str, Field(min_length=1)] | None = None
    """A path (SQLite) or an SQLAlchemy URL; None: no state outlives the process."""
    record: RecordConfig = RecordConfig()
    utilisation_window_us: _Positive = UTILISATION_WINDOW_US
    """The length of the windows in which switches count bytes."""
    reads_ports: bool = True
    """Whether the controller asks switches by gNMI which ports are up."""
    discovery: bool | None = None
    """Whether the controller finds out cables and MACs itself; None: where the topology is of kind ``fabric``."""
    damping: Damping | None = Damping()
    """Damping of cables that flap; None: a cable that is up is used."""
    profiling: ProfilingOptions = ProfilingOptions()
    """Measurement of jobs that report no profile."""
    bytes_per_count: _Positive = 1.0
    """The bytes for which one byte that switches count stands: more than 1 where rates and sizes are scaled down."""
    leadership: LeadershipConfig | None = None
    """Set where several controllers share the database; None: this is the only one."""

    @cached_property
    def switch_addresses(self) -> tuple[SwitchAddress, ...]:
        """Where the switches are that take rules, from ``switches`` or from the topology.

        Raises ValueError where neither says.
        """
        if self.switches is not None:
            return self.switches
        if not isinstance(self.topology, FabricSpecification):
            raise ValueError("switches: missing; this key is required")
        ours = [switch for switch in self.topology.switches if switch.control is Control.OURS]
        if without := [switch.name for switch in ours if switch.p4runtime is None and switch.openflow is None]:
            raise ValueError(
                f"switches: no address for {', '.join(without)}:"
                " the topology has neither p4runtime nor openflow of them"
            )
        return tuple(map(address_of, ours))

    @property
    def openflow_addresses(self) -> tuple[SwitchAddress, ...]:
        """The switches that speak OpenFlow."""
        return tuple(address for address in self.switch_addresses if address.openflow is not None)

    @property
    def p4runtime_addresses(self) -> tuple[SwitchAddress, ...]:
        """The switches that speak P4Runtime."""
        return tuple(address for address in self.switch_addresses if address.openflow is None)

    def logging(self, level: LogLevel | None, form: LogFormat | None) -> "ControllerConfig":
        """The same configuration with another level and format of the log; None: as it is."""
        changes = {"level": level, "format": form}
        given = {key: value for key, value in changes.items() if value is not None}
        return self.model_copy(update={"log": self.log.model_copy(update=given)})

    @property
    def discovers(self) -> bool:
        """Whether the controller finds out cables and MACs itself."""
        if self.discovery is not None:
            return self.discovery
        return isinstance(self.topology, FabricSpecification) and self.base_routing is BaseRouting.OURS

    @property
    def web_tls(self) -> ServerTls | None:
        """TLS of health, metrics and the page; None: plain text."""
        return None if self.web is None else self.web.tls or self.tls

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
        if self.web is not None and self.web_tls is None and not self.insecure and not is_local(self.web.listen):
            raise ValueError(
                f"web: {self.web.listen} can be reached from the network: set tls (docs/security.md), or write down"
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
        if self.switches is None:
            return self
        names = [switch.name for switch in self.switches]
        fabric = self.topology.build()
        expected = set(fabric.switches) - fabric.ordinary_switches
        if unknown := sorted(set(names) - set(fabric.switches)):
            raise ValueError(f"switches: not in the topology: {', '.join(unknown)}")
        if ordinary := sorted(fabric.ordinary_switches.intersection(names)):
            raise ValueError(f"switches: control is dscp_only, so nothing is written there: {', '.join(ordinary)}")
        if missing := sorted(expected - set(names)):
            raise ValueError(f"switches: no address for {', '.join(missing)}")
        if len(names) != len(set(names)):
            raise ValueError("switches: a name is listed twice")
        return self

    @model_validator(mode="after")
    def _base_routing_of_others_is_read(self) -> Self:
        if self.base_routing is BaseRouting.OTHER and self.discovery:
            raise ValueError("discovery: not with base_routing: other, which answers ARP and knows neighbours itself")
        if self.base_routing is BaseRouting.OTHER and self.read_back_s is None:
            raise ValueError("base_routing: other needs read_back_s, by which the controller hears of changes")
        return self

    @model_validator(mode="after")
    def _switches_are_reached_safely(self) -> Self:
        if self.switches is None and not isinstance(self.topology, FabricSpecification):
            return self  # ``load_config`` tells it beside all other problems
        if self.switch_tls is None and not self.insecure:
            check_local(self.p4runtime_addresses)
        check_certificate_names(self.openflow_addresses, self.openflow.tls)
        if self.openflow.tls is None and not self.insecure:
            check_openflow_local(self.openflow_addresses, self.openflow.listen)
        return self

    @model_validator(mode="after")
    def _switches_that_speak_openflow_fit(self) -> Self:
        if self.switches is None and not isinstance(self.topology, FabricSpecification):
            return self
        datapaths = Counter(address.device for address in self.openflow_addresses)
        if not datapaths:
            return self
        names = ", ".join(address.name for address in self.openflow_addresses)
        if repeated := [datapath_id for datapath_id, count in datapaths.items() if count > 1]:
            raise ValueError(f"switches: the datapath id {repeated[0]:#x} is listed twice")
        if self.base_routing is BaseRouting.OTHER:
            raise ValueError(f"base_routing: other is not possible with switches that speak OpenFlow: {names}")
        if "hash" in self.model_fields_set and self.hash is FabricHash.KNOWN:
            raise ValueError(f"hash: known is not possible with switches that speak OpenFlow: {names}")
        self.__dict__["hash"] = FabricHash.UNKNOWN  # the model is frozen
        return self


class ConfigError(DaemonError, DocumentError):
    """A configuration that cannot be used; ``messages`` has one line per problem: file, key path and problem."""


def load_config(path: Path) -> ControllerConfig:
    """Read the configuration from a YAML file. Raises ConfigError with all its problems."""
    try:
        document = read_configuration(path)
    except DocumentError as error:
        raise ConfigError(error.messages) from error
    problems = list(document.problems)
    contents = as_mapping(document.contents)
    if contents and "switches" not in contents and as_mapping(contents.get("topology")).get("kind") != "fabric":
        problems.append(Problem(("switches",), "missing; this key is required"))
    try:
        config = ControllerConfig.model_validate(document.contents)
    except ValidationError as error:
        problems += [problem_of_error(fault, document.contents, ControllerConfig) for fault in error.errors()]
    if problems:
        raise ConfigError(document.messages(problems))
    return config


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The file of a controller's configuration, and the options of its command that win over it; None: the file's."""

    path: Path
    log_level: LogLevel | None = None
    log_format: LogFormat | None = None

    def read(self) -> ControllerConfig:
        """Read the configuration as the file has it now. Raises ConfigError with all its problems."""
        return load_config(self.path).logging(self.log_level, self.log_format)
