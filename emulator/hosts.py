"""Hosts of a fabric: connections between their NICs, the transfers on them, and what their senders know."""

import math
from collections.abc import Callable

import numpy as np

from emulator.congestion.control import CongestionControl
from emulator.engine import state as s
from emulator.engine.controlled_transport import ECT_0
from emulator.headers import template
from emulator.host_options import HostOptions
from emulator.observations import PS_PER_S, Progress, Sender
from emulator.parts import Parts
from topologies.addressing import FiveTuple, switch_mac
from topologies.fabric import Fabric


class Hosts:
    """Sending hosts; flows are numbered from 0. A method with a flow raises ValueError for an unknown one."""

    def __init__(self, fabric: Fabric, options: HostOptions, parts: Parts) -> None:
        self._fabric = fabric
        self._options = options
        self._controls = options.controls
        self._parts = parts
        self._num_flows = 0

    def add_flow(self, five_tuple: FiveTuple, congestion_control: str | None) -> int:
        """See ``EmulatedFabric.add_flow``."""
        for address in (five_tuple.source_address, five_tuple.destination_address):
            if address not in self._fabric.nic_by_address:
                raise ValueError(f"no NIC has the address of {five_tuple}")
        source = self._fabric.nic_by_address[five_tuple.source_address]
        destination = self._fabric.nic_by_address[five_tuple.destination_address]
        flow = self._num_flows
        if flow == len(self._state.flows):
            self._parts.grow_flows()
        row = self._state.flows[flow]
        row[s.FLOW_SOURCE_LINK], row[s.FLOW_DESTINATION_LINK] = source.link, destination.link
        row[s.FLOW_MTU_BYTES], row[s.FLOW_WINDOW] = self._options.mtu_bytes, self._options.window_packets
        row[s.FLOW_ACKNOWLEDGE_EVERY] = self._options.acknowledge_every
        row[s.FLOW_RETRANSMITTED] = -1
        self._set_control(flow, congestion_control)
        for direction, (one_way, nic) in enumerate(((five_tuple, source), (five_tuple.reverse, destination))):
            header = template(one_way, nic.mac or switch_mac(0, 0))
            row[s.FLOW_HEADER_BYTES] = len(header)
            self._state.templates[flow, direction, : len(header)] = np.frombuffer(header, dtype=np.uint8)
        self._num_flows += 1
        return flow

    def set_level(self, flow: int, level: int) -> None:
        """See ``EmulatedFabric.set_flow_level``."""
        self._require_flow(flow)
        if not 0 <= level < s.LEVELS:
            raise ValueError(f"flow {flow}: the level must be within 0 to {s.LEVELS - 1}, not {level}")
        self._state.flows[flow, s.FLOW_LEVEL] = level

    def start_transfer(self, flow: int, size_bytes: int, begin: Callable[[s.State, int, int, int], object]) -> None:
        """See ``EmulatedFabric.start_transfer``; ``begin`` is the engine's function, which the hosts' controls need."""
        self._require_flow(flow)
        row = self._state.flows[flow]
        if row[s.FLOW_EXPECTED] != row[s.FLOW_LAST]:
            raise ValueError(f"flow {flow} has not finished its last transfer")
        if size_bytes < 1:
            raise ValueError(f"flow {flow}: a transfer has at least one byte, not {size_bytes}")
        num_packets = math.ceil(size_bytes / self._options.mtu_bytes)
        last_bytes = size_bytes - (num_packets - 1) * self._options.mtu_bytes
        begin(self._parts.with_source(int(row[s.FLOW_SOURCE_LINK])), flow, num_packets, last_bytes)

    def retransmissions(self, flow: int) -> int:
        """Return the number of retransmitted packets of a flow."""
        self._require_flow(flow)
        return int(self._state.flows[flow, s.FLOW_RETRANSMISSIONS])

    def progress(self, flow: int) -> Progress:
        """Return the progress of a flow's sender."""
        self._require_flow(flow)
        row = self._state.flows[flow]
        return Progress(int(row[s.FLOW_NEXT]), int(row[s.FLOW_UNACKNOWLEDGED]))

    def sender(self, flow: int) -> Sender:
        """Return what a flow's congestion control holds. Raises ValueError for a flow without one, too."""
        self._require_flow(flow)
        control = self._control(flow)
        if control is None:
            raise ValueError(f"flow {flow} has a fixed window")
        row, words = self._state.senders[flow], self._state.windows[flow].tolist()
        return Sender(
            window_packets=words[s.WINDOW],
            round_trip_s=int(row[s.SENDER_RTT_PS]) / PS_PER_S,
            delivered_packets=int(row[s.SENDER_DELIVERED]),
            marked_packets=int(row[s.SENDER_MARKED]),
            timeouts=int(row[s.SENDER_TIMEOUTS]),
            words=dict(zip((*control.parameters, *control.state), words[s.WINDOW + 1 :], strict=False)),
        )

    @property
    def _state(self) -> s.State:
        return self._parts.first

    def _set_control(self, flow: int, name: str | None) -> None:
        """Give a new flow its congestion control."""
        names = self._options.control_names
        if name is not None and name not in names:
            raise ValueError(f"no flow can have congestion control {name!r}: the hosts have {', '.join(names)}")
        if not self._controls:
            return
        row, name = self._state.senders[flow], name or names[0]
        row[s.SENDER_CONTROL], row[s.SENDER_NEWEST] = s.NONE, -1
        for index, control in enumerate(self._controls):
            if control.name == name:
                row[s.SENDER_CONTROL], row[s.SENDER_TOS] = index, ECT_0 if control.is_ecn_capable else 0
                values = tuple(control.parameters.values())
                self._state.windows[flow, s.WINDOW + 1 : s.WINDOW + 1 + len(values)] = values

    def _control(self, flow: int) -> CongestionControl | None:
        if not self._controls or self._state.senders[flow, s.SENDER_CONTROL] == s.NONE:
            return None
        return self._controls[int(self._state.senders[flow, s.SENDER_CONTROL])]

    def _require_flow(self, flow: int) -> None:
        if not 0 <= flow < self._num_flows:
            raise ValueError(f"there is no flow {flow}; flows are numbered from 0, and there are {self._num_flows}")
