"""A running BMv2: simple_switch_grpc in a process of its own, packets by gRPC, no interfaces and no privileges."""

import os
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import grpc
from finsy.proto import p4i, p4r, p4r_grpc

from emulator.p4runtime.pipeline import compiled_pipeline
from p4src import P4INFO, PROGRAM
from tests.bmv2.session import CPU_PORT, Packet
from tests.bmv2.wire import DOWN, METHOD, PORT_METHOD, UP, PortPacket, PortStatus
from tests.ports import free_port

VARIABLE = "TRAINYARD_BMV2"
"""Names the program where it is not on PATH."""

_COMMAND = "simple_switch_grpc"
_DEVICE_ID = 1
_ELECTION_ID = p4r.Uint128(low=1)
_START_S, _PACKET_S, _POLL_S = 20.0, 30.0, 0.005
_HEADER = struct.Struct("!H")
_PADDING_BITS = 7
_PORT_ID, _PADDING_ID = 1, 2
_TRAINYARD = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes()).message
_FIRST_S, _QUIET_S = 0.5, 0.05
"""So long nothing leaves, at first and then, where nothing more is expected because of a packet."""


def find_bmv2() -> str | None:
    """The path of simple_switch_grpc; none where it is not installed. Raises ValueError where a name is wrong."""
    named = os.environ.get(VARIABLE)
    if named and not shutil.which(named):
        raise ValueError(f"{VARIABLE} names {named!r}, which is no program")
    return shutil.which(named or _COMMAND)


def version_of(command: str) -> str:
    """What simple_switch_grpc says its version is."""
    return subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def running(command: str, config: p4r.ForwardingPipelineConfig = _TRAINYARD) -> Iterator["Bmv2"]:
    """BMv2 with a pipeline, for as long as the context lasts. Raises RuntimeError where it does not start."""
    address, packets_address = (f"127.0.0.1:{free_port()}" for _ in range(2))
    arguments = ["--no-p4", "--device-id", str(_DEVICE_ID), "--", "--grpc-server-addr", address]
    arguments += ["--dp-grpc-server-addr", packets_address, "--cpu-port", str(CPU_PORT), "--priority-queues", "8"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen([command, *arguments], stdout=output, stderr=output, cwd=folder)
        try:
            with grpc.insecure_channel(address) as channel, grpc.insecure_channel(packets_address) as packets:
                try:
                    grpc.channel_ready_future(channel).result(_START_S)
                except grpc.FutureTimeoutError:
                    raise RuntimeError(f"{command} does not answer: {log.read_text()[-2000:]}") from None
                bmv2 = Bmv2(channel, packets, config)
                try:
                    yield bmv2
                finally:
                    bmv2.close()
        finally:
            process.terminate()
            process.wait()


class Bmv2:
    """A ``tests.bmv2.session.Switch``; any port below 510 may be used.

    A program with a counter ``drop_counter`` counts in it what does not leave; with any other, what leaves because of a
    packet is what comes until it is quiet.
    """

    def __init__(
        self, channel: grpc.Channel, packets_channel: grpc.Channel, config: p4r.ForwardingPipelineConfig
    ) -> None:
        self._config = config
        self._stub = p4r_grpc.P4RuntimeStub(channel)
        self._left: SimpleQueue[Packet] = SimpleQueue()
        self._dropped = 0
        self._replicates = False
        self._control = _Stream(self._stub.StreamChannel, self._take_message)
        arbitration = p4r.MasterArbitrationUpdate(device_id=_DEVICE_ID, election_id=_ELECTION_ID)
        self._control.send(p4r.StreamMessageRequest(arbitration=arbitration))
        drop_counters = (c.preamble.id for c in config.p4info.counters if c.preamble.alias == "drop_counter")
        self._drop_counter = next(drop_counters, None)
        self._become_primary()
        method = packets_channel.stream_stream(
            METHOD, request_serializer=PortPacket.SerializeToString, response_deserializer=PortPacket.FromString
        )
        _wait_until_ready(method)
        self._set_port = packets_channel.unary_unary(
            PORT_METHOD, request_serializer=PortStatus.SerializeToString, response_deserializer=bytes
        )
        self._packets = _Stream(method, lambda m: self._left.put(Packet(m.port, m.packet)))

    @property
    def p4info(self) -> p4i.P4Info:
        """That of the program."""
        return self._config.p4info

    def close(self) -> None:
        """End the streams."""
        self._packets.close()
        self._control.close()

    def clear(self) -> None:
        """Set the pipeline anew. Raises RuntimeError where packets have left that nobody waited for."""
        if not self._left.empty():
            raise RuntimeError(f"BMv2 has sent more than was expected: {self._left.get()}")
        self._delete_replications()
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=_DEVICE_ID,
            election_id=_ELECTION_ID,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self._config,
        )
        self._stub.SetForwardingPipelineConfig(request)
        self._dropped = 0

    def write(self, updates: list[p4r.Update]) -> None:
        """Carry out updates. Raises grpc.RpcError where any is refused."""
        self._replicates |= any(update.entity.HasField("packet_replication_engine_entry") for update in updates)
        self._stub.Write(p4r.WriteRequest(device_id=_DEVICE_ID, election_id=_ELECTION_ID, updates=updates))

    def read(self, *requests: p4r.Entity) -> list[p4r.Entity]:
        """What the requests select."""
        responses = self._stub.Read(p4r.ReadRequest(device_id=_DEVICE_ID, entities=requests))
        return [entity for response in responses for entity in response.entities]

    def set_port(self, port: int, *, up: bool) -> None:
        """Take a port down, or bring it up."""
        self._set_port(PortStatus(device_id=_DEVICE_ID, port=port, status=UP if up else DOWN))

    def send(self, packet: Packet) -> list[Packet]:
        """Let a packet arrive, and give what leaves. Raises RuntimeError where it neither leaves nor is counted."""
        if packet.port == CPU_PORT:
            self._control.send(_packet_out(packet.octets))
        else:
            self._packets.send(PortPacket(device_id=_DEVICE_ID, port=packet.port, packet=packet.octets))
        if self._drop_counter is None:
            return self._until_quiet()
        deadline = time.monotonic() + _PACKET_S
        while time.monotonic() < deadline:
            try:
                return [self._left.get(timeout=_POLL_S)]
            except Empty:
                dropped = self._count_dropped()
                if dropped != self._dropped:
                    self._dropped = dropped
                    return []
        raise RuntimeError(f"BMv2 neither sent nor counted as dropped, within {_PACKET_S} s: {packet}")

    def _delete_replications(self) -> None:
        """BMv2 keeps the copies of groups and sessions that a new pipeline has removed."""
        if self._replicates:
            groups, sessions = p4r.Entity(), p4r.Entity()
            groups.packet_replication_engine_entry.multicast_group_entry.SetInParent()
            sessions.packet_replication_engine_entry.clone_session_entry.SetInParent()
            found = self.read(groups, sessions)
            self.write([p4r.Update(type=p4r.Update.DELETE, entity=entity) for entity in found])
            self._replicates = False

    def _until_quiet(self) -> list[Packet]:
        """Sorted, as BMv2's ports do not wait for each other."""
        left: list[Packet] = []
        with suppress(Empty):
            while True:
                left.append(self._left.get(timeout=_QUIET_S if left else _FIRST_S))
        return sorted(left, key=lambda packet: (packet.port, packet.octets))

    def _become_primary(self) -> None:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            try:
                self.clear()
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.PERMISSION_DENIED:
                    raise
                time.sleep(_POLL_S)
            else:
                return
        raise RuntimeError(f"BMv2 has another primary controller than election id {_ELECTION_ID.low}")

    def _count_dropped(self) -> int:
        if self._drop_counter is None:
            return 0
        cells = self.read(p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=self._drop_counter)))
        return sum(cell.counter_entry.data.packet_count for cell in cells)

    def _take_message(self, message: p4r.StreamMessageResponse) -> None:
        if message.HasField("packet"):
            values = {field.metadata_id: int.from_bytes(field.value, "big") for field in message.packet.metadata}
            header = _HEADER.pack(values[_PORT_ID] << _PADDING_BITS) if values else b""
            self._left.put(Packet(CPU_PORT, header + message.packet.payload))


class _Stream:
    """A call that streams both ways; what comes is handed on by a thread of its own."""

    def __init__(self, method: Any, take: Callable[[Any], None]) -> None:
        self._requests: SimpleQueue[Any] = SimpleQueue()
        self._call = method(iter(self._requests.get, None))
        self._take = take
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def send(self, message: Any) -> None:
        self._requests.put(message)

    def close(self) -> None:
        self._requests.put(None)
        self._call.cancel()
        self._thread.join()

    def _receive(self) -> None:
        try:
            for message in self._call:
                self._take(message)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.CANCELLED:
                raise


def _wait_until_ready(packets: Any) -> None:
    """BMv2 refuses streams of packets for some time after it has answered as a P4Runtime server."""
    deadline = time.monotonic() + _START_S
    while True:
        try:
            list(packets(iter(()), timeout=_START_S))
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)
        else:
            return


def _packet_out(octets: bytes) -> p4r.StreamMessageRequest:
    [header] = _HEADER.unpack_from(octets)
    request = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=octets[_HEADER.size :]))
    port = (header >> _PADDING_BITS).to_bytes(2, "big")
    request.packet.metadata.add(metadata_id=_PORT_ID, value=port.lstrip(b"\0") or b"\0")
    request.packet.metadata.add(metadata_id=_PADDING_ID, value=b"\0")
    return request
