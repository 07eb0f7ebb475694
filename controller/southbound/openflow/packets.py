"""Packets between the controller and the ports of switches that speak OpenFlow."""

from collections.abc import Collection, Iterable

from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.packet_messages import decode_packet_in, encode_packet_out
from controller.southbound.packet_queue import PacketQueue


class OpenFlowPackets(PacketQueue):
    """The packets that switches hand up, and the way back to their ports."""

    def __init__(self) -> None:
        super().__init__()
        self._channels: dict[str, OpenFlowChannel] = {}

    @property
    def connected(self) -> Collection[str]:
        """The switches that can send packets."""
        return self._channels.keys()

    def connect(self, name: str, channel: OpenFlowChannel) -> None:
        """Handle a connection over which packets can be sent, and take those that come over it."""
        self._channels[name] = channel
        channel.on_packet_in = lambda message: self._receive(name, channel, message)

    def disconnect(self, name: str) -> None:
        """Handle the loss of a connection."""
        self._channels.pop(name, None)

    def send(self, name: str, packets: Iterable[tuple[int, bytes]]) -> None:
        """Have frames sent from ports of a switch. What is lost on the way, or finds the switch away, is not known."""
        channel = self._channels.get(name)
        if channel is not None:
            channel.send(encode_packet_out(port, octets, channel.version) for port, octets in packets)

    def _receive(self, name: str, channel: OpenFlowChannel, message: bytes) -> None:
        packet = decode_packet_in(message, channel.version)
        # Ports that a switch does not describe count as unknown: it could name any number of them.
        self.keep(name, packet.port if packet.port in channel.ports else None, packet.octets)
