"""Survey a running fabric: send beacons and ARP from the ports of its switches, and note who is heard where.

The survey writes no entry and changes no setting. It bids for every switch with the lowest election id, so that a
controller that has the switch keeps it, and one that comes takes it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from finsy import P4ClientError, P4Schema, Switch, SwitchOptions

from controller.discovery.arp_packets import NOBODY, ArpPacket
from controller.discovery.beacons import PERIOD_S, Beacons, period_at
from controller.discovery.frames import Frame, by_switch
from controller.discovery.lldp_packets import LldpPacket
from controller.discovery.survey import Survey, SurveyedHost, SurveyedPort, SurveyedSwitch
from controller.discovery.survey_config import SurveyConfig
from controller.errors import DaemonError
from controller.links.port_states import Port
from controller.southbound.gnmi_interfaces import InterfacesError, read_interfaces
from controller.southbound.p4runtime.held_program import hear_of_missing_programs
from controller.southbound.p4runtime.packets import PacketGate
from controller.southbound.p4runtime.reconnecting import reason_of
from controller.southbound.southbound import PacketArrival
from controller.southbound.tls import finsy_credentials
from controller.switch_addresses import SwitchAddress
from topologies.addressing import BROADCAST_MAC, Address, MacAddress, Prefix, switch_mac
from topologies.targets import Target, target_of
from topologies.tofino.ports import CABLED_PORTS

_LOG = logging.getLogger(__name__)

ELECTION_ID = 1
_CONNECT_S = 10.0
_LOAD_S = 60.0
_SEND_S = 5.0
_TAKE_S = 0.05
_QUESTIONS_AT_ONCE = 200
_PORTS_TRIED = (range(1, 65),)
_TOFINO_PORTS_TRIED = (range(1, CABLED_PORTS[0].stop), *CABLED_PORTS[1:])
"""The ports of a switch that tells none by gNMI; no port of ours has number 0."""
_MOST_ADDRESSES = 8
"""Addresses of a host that are kept."""


class SurveyError(DaemonError):
    """A fabric that cannot be surveyed; the message has a line for each switch that is the reason."""


async def survey(config: SurveyConfig, pipeline: Path | None, subnets: Sequence[Prefix], listen_s: float) -> Survey:
    """Survey a fabric.

    Args:
        config: Where its switches are.
        pipeline: The folder of the P4 program to load onto switches that run none; None: none is loaded.
        subnets: Subnets all of whose addresses are asked for at all ports.
        listen_s: How long to listen after the last question.

    Raises:
        SurveyError: Switches are away, run no program that passes packets, or belong to a controller.
    """
    told = await asyncio.gather(*(_told_ports(config, address) for address in config.switches))
    gate = PacketGate()
    targets: dict[str, Target] = {}
    async with AsyncExitStack() as stack:
        outcomes = await asyncio.gather(
            *(_connect(config, address, pipeline, gate, targets, stack) for address in config.switches)
        )
        if problems := [problem for problem in outcomes if problem]:
            raise SurveyError("\n".join(problems))
        switches = tuple(
            SurveyedSwitch(
                each.name,
                each.address,
                each.device_id,
                each.gnmi,
                _tried_ports(each.name, targets[each.name], ports) if isinstance(ports, str) else ports,
                targets[each.name],
            )
            for each, ports in zip(config.switches, told, strict=True)
        )
        surveyor = Surveyor(switches, gate)
        gate.listen(lambda: None)
        await surveyor.run(subnets, listen_s)
    return surveyor.survey


class Surveyor:
    """Sends beacons and questions from all ports that are up, and notes who is heard where."""

    def __init__(
        self,
        switches: Sequence[SurveyedSwitch],
        gate: PacketGate,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ports = {each.name: dict(each.ports) for each in switches}
        self._switches = tuple(replace(each, ports=self._ports[each.name]) for each in switches)
        self._gate = gate
        self._now_s = now_s
        names = {(each.name, number): port.name for each in switches for number, port in each.ports.items()}
        self._beacons = Beacons([switch.name for switch in switches], names)
        self._number_of = {switch.name: number for number, switch in enumerate(switches)}
        self._up = [
            (each.name, number) for each in switches for number, port in sorted(each.ports.items()) if port.is_up
        ]
        self._heard: dict[Port, Port] = {}
        self._hosts: dict[Port, SurveyedHost] = {}

    @property
    def survey(self) -> Survey:
        """What was found by now."""
        cabled = self._heard.keys()
        hosts = {port: host for port, host in self._hosts.items() if port not in cabled}
        return Survey(self._switches, dict(self._heard), hosts)

    async def run(self, subnets: Sequence[Prefix], listen_s: float) -> None:
        """Ask all there is to ask, and listen for some time after."""
        end_s, next_beacon_s = self._now_s() + listen_s, self._now_s()
        questions = self._questions(subnets)
        # A second beacon for those that were lost; questions only where no switch is heard.
        is_asking = True
        while is_asking or self._now_s() < end_s:
            if self._now_s() >= next_beacon_s:
                next_beacon_s = self._now_s() + PERIOD_S
                period = period_at(self._now_s())
                await self._send([(port, self._beacons.frame(port, period)) for port in self._up])
            elif is_asking:
                batch = [question for _, question in zip(range(_QUESTIONS_AT_ONCE), questions, strict=False)]
                await self._send(batch)
                is_asking = len(batch) == _QUESTIONS_AT_ONCE
                end_s = self._now_s() + listen_s
            await asyncio.sleep(_TAKE_S)
            self.take()

    def take(self) -> None:
        """Note what has arrived."""
        for arrival in self._gate.take(1 << 16):
            self._note(arrival)

    def _note(self, arrival: PacketArrival) -> None:
        port = arrival.switch, arrival.port
        frame = Frame.read(arrival.octets)
        if frame is None:
            return
        # Packets come also from ports that the switch has not told of.
        self._ports[arrival.switch].setdefault(arrival.port, SurveyedPort(str(arrival.port), is_up=True))
        if (arp := ArpPacket.read(frame)) is not None and arp.sender:
            known = self._hosts.get(port, SurveyedHost())
            addresses = tuple(dict.fromkeys((*known.addresses, arp.sender)))[:_MOST_ADDRESSES]
            self._hosts[port] = SurveyedHost(known.name, known.nic, arp.sender_mac, addresses)
        elif (packet := LldpPacket.read(frame)) is not None:
            sender = self._beacons.sender(packet, period_at(self._now_s()))
            if isinstance(sender, tuple):
                self._heard[port] = sender
            elif sender is None:
                known = self._hosts.get(port, SurveyedHost())
                nic = "" if packet.port_mac is not None else packet.port
                mac = known.mac or packet.port_mac or frame.source
                self._hosts[port] = SurveyedHost(packet.system, nic, mac, known.addresses)

    def _questions(self, subnets: Sequence[Prefix]) -> Iterator[tuple[Port, bytes]]:
        """Yield ARP requests from nobody, which hosts answer and remember nothing of."""
        for subnet in subnets:
            first, size = subnet.address, 1 << 32 - subnet.length
            for address in range(first + (size > 2), first + size - (size > 2)):
                for port in self._up:
                    if port not in self._heard:
                        mac = switch_mac(self._number_of[port[0]], port[1])
                        question = ArpPacket(False, mac, NOBODY, MacAddress(0), Address(address))
                        yield port, question.frame(BROADCAST_MAC)

    async def _send(self, frames: Sequence[tuple[Port, bytes]]) -> None:
        sent_by = by_switch(frames)
        for switch, sent in sent_by.items():
            self._gate.send(switch, sent)
        # A switch that takes nothing for so long misses questions, and the others do not.
        with suppress(TimeoutError):
            async with asyncio.timeout(_SEND_S):
                await asyncio.gather(*map(self._gate.sent, sent_by))


async def _told_ports(config: SurveyConfig, address: SwitchAddress) -> Mapping[int, SurveyedPort] | str:
    """Return the ports of a switch, or why it tells none."""
    try:
        async with asyncio.timeout(_CONNECT_S):
            interfaces = await read_interfaces(address, config.switch_tls)
    except (InterfacesError, TimeoutError) as error:
        return str(error) or "no answer"
    return {
        each.number: SurveyedPort(each.name, each.is_up, each.gbps) for each in interfaces if each.number is not None
    }


def _tried_ports(switch: str, target: Target, reason: str) -> Mapping[int, SurveyedPort]:
    """Return the ports that a switch may have which tells none for this reason."""
    tried = _TOFINO_PORTS_TRIED if target is Target.TOFINO else _PORTS_TRIED
    ranges = ", ".join(f"{numbers[0]} to {numbers[-1]}" for numbers in tried)
    _LOG.warning("switch %s: it tells no ports, so ports %s are tried: %s", switch, ranges, reason)
    return {number: SurveyedPort(str(number), is_up=True) for number in chain.from_iterable(tried)}


async def _connect(
    config: SurveyConfig,
    address: SwitchAddress,
    pipeline: Path | None,
    gate: PacketGate,
    targets: dict[str, Target],
    stack: AsyncExitStack,
) -> str:
    """Connect to a switch until the stack ends; return the problem, empty where there is none, and note its target."""
    options = SwitchOptions(
        device_id=address.device_id,
        initial_election_id=ELECTION_ID,
        channel_credentials=finsy_credentials(config.switch_tls),
    )
    switch = Switch(address.name, address.address, options)
    hear_of_missing_programs(switch)
    gate.follow(switch)
    try:
        async with asyncio.timeout(_CONNECT_S):
            await stack.enter_async_context(switch)
    except (P4ClientError, TimeoutError) as error:
        reason = "no answer" if isinstance(error, TimeoutError) else reason_of(error)
        return f"switch {address.name} at {address.address}: {reason}"
    if not switch.is_primary:
        return (
            f"switch {address.name}: a controller has it, with election id {switch.primary_id};"
            " ask that controller: trainyard show cables"
        )
    if not switch.p4info.exists and pipeline is not None:
        try:
            async with asyncio.timeout(_LOAD_S):
                await _load(switch, pipeline)
        except (P4ClientError, TimeoutError) as error:
            reason = "no answer" if isinstance(error, TimeoutError) else reason_of(error)
            return f"switch {address.name}: it does not take the P4 program: {reason}"
    if not switch.p4info.exists or switch.p4info.controller_packet_metadata.get("packet_out") is None:
        program = "no P4 program" if not switch.p4info.exists else "a P4 program that passes no packets to controllers"
        return f"switch {address.name}: it runs {program}"
    gate.connect(switch)
    targets[address.name] = target_of(switch.p4info.arch)
    return ""


async def _load(switch: Switch, pipeline: Path) -> None:
    """Load our program onto a switch that runs none."""
    schema = P4Schema(pipeline / "trainyard.p4info.txtpb", pipeline / "trainyard.json")
    await switch._set_pipeline_config_request(config=schema.get_pipeline_config())
    switch.p4info.set_p4info(schema.p4info)
