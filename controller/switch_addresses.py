"""How the switches of a configuration are found: by P4Runtime, or by OpenFlow."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from controller.access.tls_files import TlsFiles
from hostlib.addresses import check_host_port, check_server, is_local
from topologies.fabric_parts import SwitchSpecification
from topologies.openflow_specification import OpenFlowSpecification

HostPort = Annotated[str, AfterValidator(check_host_port)]
"""The address of a server: a host name or an IP address, and a port."""


class SwitchAddress(BaseModel):
    """How a switch of the topology is found: by P4Runtime, and gNMI where its address differs, or by OpenFlow."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    address: HostPort = ""
    """Where it serves P4Runtime; empty where it speaks OpenFlow."""
    device_id: Annotated[int, Field(ge=0, lt=1 << 64)] = 1
    gnmi: HostPort | None = None
    openflow: OpenFlowSpecification | None = None

    @property
    def place(self) -> str:
        """Where the switch is, in words."""
        return self.address if self.openflow is None else self.openflow.place

    @property
    def device(self) -> int:
        """The number of the switch: its P4Runtime device at its address, or its OpenFlow datapath id."""
        return self.device_id if self.openflow is None else self.openflow.datapath_id

    @model_validator(mode="after")
    def _speaks_one_protocol(self) -> Self:
        if self.openflow is None and not self.address:
            raise ValueError("expected address, where the switch serves P4Runtime, or openflow")
        if self.openflow is not None and (beside := sorted({"address", "device_id", "gnmi"} & self.model_fields_set)):
            raise ValueError(f"expected openflow alone, there is {', '.join(beside)} beside it")
        return self


class OpenFlowConfig(BaseModel):
    """How switches that speak OpenFlow reach the controller."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    listen: Annotated[str, AfterValidator(partial(check_server, first_port=0))] = "0.0.0.0:6653"
    """Where switches connect that are not connected to; without TLS it has to be a local address."""
    tls: TlsFiles | None = None
    """The files for TLS with them; None: plain text."""
    configure: bool = False
    """Whether settings of Open vSwitch are set without which a bridge forwards by itself; otherwise it is refused."""


def address_of(switch: SwitchSpecification) -> SwitchAddress:
    """Return how a fabric file says that one of its switches is found."""
    if switch.openflow is not None:
        return SwitchAddress(name=switch.name, openflow=switch.openflow)
    assert switch.p4runtime is not None, "the caller has checked it"
    return SwitchAddress(name=switch.name, address=switch.p4runtime, device_id=switch.device_id, gnmi=switch.gnmi)


def check_local(switches: Iterable[SwitchAddress]) -> None:
    """Raise ValueError where plain text over P4Runtime or gNMI with one of these switches would go over the network."""
    for switch in switches:
        if not all(is_local(at) for at in (switch.address, switch.gnmi) if at):
            raise ValueError(
                f"switches: {switch.name} is reached over the network: set switch_tls (docs/security.md), or write down"
                " insecure: true"
            )


def check_certificate_names(switches: Iterable[SwitchAddress], tls: TlsFiles | None) -> None:
    """Raise ValueError where the certificate of one of these switches is to be checked that will show none."""
    for switch in switches:
        if tls is None and switch.openflow is not None and switch.openflow.certificate_name is not None:
            raise ValueError(f"switches: {switch.name} has a certificate_name: set openflow.tls, else it has none")


def check_openflow_local(switches: Iterable[SwitchAddress], listen: str) -> None:
    """Raise ValueError where plain text over OpenFlow with one of these switches would go over the network."""
    for switch in switches:
        if switch.openflow is None:
            continue
        if switch.openflow.connect is None and not is_local(listen):
            raise ValueError(
                f"openflow: {listen} can be reached from the network: set openflow.tls (docs/security.md), or write"
                " down insecure: true"
            )
        if switch.openflow.connect is not None and not is_local(switch.openflow.connect):
            raise ValueError(
                f"switches: {switch.name} is reached over the network: set openflow.tls (docs/security.md), or write"
                " down insecure: true"
            )
