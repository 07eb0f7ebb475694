"""A fabric as it is: hosts with their NICs, switches with their ports, and the cables between these.

Other kinds of topology say how a fabric is shaped, and the rest follows (``trainyard expand`` writes it out). Here
every name, address and number is the operator's::

    topology:
      kind: fabric
      hosts:
        - {name: gpu-1, nics: [{name: ens1, address: 192.168.7.11/26, mac: "b8:59:9f:00:00:01"}]}
        - {name: gpu-2, nics: [{name: ens1, address: 192.168.7.12/26}]}
      switches:
        - name: leaf
          p4runtime: leaf.example:9559
          ports: [{name: Ethernet1/1, number: 132}, {name: Ethernet1/2, number: 140}]
      cables:
        - {ends: ["gpu-1:ens1", "leaf:Ethernet1/1"], gbps: 100}
        - {ends: ["gpu-2:ens1", "leaf:Ethernet1/2"], gbps: 100}
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ModelWrapValidatorHandler, ValidationError, model_validator

from topologies.addressing import MacAddress
from topologies.base_specification import Specification
from topologies.fabric import Cable, Fabric, SwitchIdentity
from topologies.fabric_parts import CableSpecification, HostSpecification, SwitchSpecification
from topologies.fabric_problems import fabric_problems
from topologies.problems import validation_error


class FabricSpecification(Specification):
    """Hosts, switches and cables of a fabric, each as it is.

    All problems of single values and of the whole (``topologies.fabric_problems``) are reported together.
    """

    kind: Literal["fabric"]
    hosts: tuple[HostSpecification, ...]
    switches: tuple[SwitchSpecification, ...]
    cables: tuple[CableSpecification, ...]

    @model_validator(mode="wrap")
    @classmethod
    def _is_a_fabric(cls, document: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(document, Mapping):
            return validate(document)
        problems = fabric_problems(document)
        try:
            found = validate(document)
        except ValidationError as error:
            raise validation_error(cls, problems, error.errors()) from error
        if problems:
            raise validation_error(cls, problems)
        return found

    def build(self) -> Fabric:
        """Build the fabric; names, addresses and numbers are kept."""
        numbers: dict[tuple[str, str], int] = {}
        speeds_gbps: dict[tuple[str, str], float | None] = {}
        for host in self.hosts:
            for number, nic in enumerate(host.nics):
                numbers[host.name, nic.name], speeds_gbps[host.name, nic.name] = number, nic.gbps
        for switch in self.switches:
            for port in switch.cabled_ports:
                numbers[switch.name, port.name], speeds_gbps[switch.name, port.name] = port.number, port.gbps

        def built(cable: CableSpecification) -> Cable:
            first, second = cable.split_ends
            said_gbps = (cable.gbps, speeds_gbps.get(first), speeds_gbps.get(second))
            gbps = next(each for each in said_gbps if each is not None)
            delay_us = self.delay_us if cable.delay_us is None else cable.delay_us
            # A switch that lists no ports has their numbers for names.
            first_port, second_port = (numbers[end] if end in numbers else int(end[1]) for end in (first, second))
            return Cable((first[0], second[0]), gbps * 1e9, delay_us * 1e-6, (first_port, second_port))

        return Fabric(
            tuple(host.name for host in self.hosts),
            tuple(switch.name for switch in self.switches),
            tuple(map(built, self.cables)),
            self.gpus_per_host,
            self.host_pcie,
            tuple(tuple(nic.interface for nic in host.nics) for host in self.hosts),
            tuple(
                SwitchIdentity(
                    switch.device_id,
                    number if switch.node_id is None else switch.node_id,
                    tuple((port.number, port.name) for port in switch.cabled_ports),
                    switch.control,
                    None if switch.mac is None else MacAddress.parse(switch.mac),
                    switch.target,
                )
                for number, switch in enumerate(self.switches, 1)
            ),
        )
