"""One device of the server: its switch, its controllers and its pipeline."""

import logging
from collections.abc import Callable

import grpc
from finsy.proto import U128, p4r, rpc_code, rpc_status

from emulator.p4runtime.arbitration import Arbitration, ElectionIdInUseError
from emulator.p4runtime.controller_packets import decode_packet_in, encode_packet_out
from emulator.p4runtime.errors import (
    RequestError,
    failed_precondition,
    invalid_argument,
    permission_denied,
    resource_exhausted,
    unimplemented,
)
from emulator.p4runtime.pipeline import Pipeline, load_pipeline
from emulator.p4runtime.target import Target
from emulator.switch import EmulatedSwitch

Send = Callable[[p4r.StreamMessageResponse], None]

SendPacket = Callable[[str, bytes], None]
"""Sends a packet from a switch's control plane, by the switch's name; raises ValueError if it cannot."""

MAX_CONTROLLERS = 32

_LOG = logging.getLogger(__name__)


class Device:
    """A switch as P4Runtime shows it; ``program`` is the pipeline that its fabric was compiled for.

    Without ``send_packet`` its CPU port cannot be reached.
    """

    def __init__(self, switch: EmulatedSwitch, program: Pipeline, send_packet: SendPacket | None) -> None:
        self.switch = switch
        self._program = program
        self._send_packet = send_packet
        self._arbitration = Arbitration()
        self._streams: dict[int, Send] = {}
        self._target: Target | None = None
        switch.power.listen(self._lose_pipeline)

    # ---- arbitration ------------------------------------------------------------------------------------------------

    def bid(self, stream: int, election_id: int | None, send: Send) -> None:
        """Make a stream's bid and notify all streams that it concerns.

        Raises RequestError; the stream must then end: INVALID_ARGUMENT if another stream has the id, RESOURCE_EXHAUSTED
        if MAX_CONTROLLERS others have made bids.
        """
        if stream not in self._streams and len(self._streams) >= MAX_CONTROLLERS:
            raise resource_exhausted(f"device {self.switch.device_id} has {MAX_CONTROLLERS} controllers already")
        try:
            self._arbitration, informed = self._arbitration.bid(stream, election_id)
        except ElectionIdInUseError as error:
            raise invalid_argument(f"{error} on device {self.switch.device_id}") from None
        self._streams[stream] = send
        self._inform(informed)

    def leave(self, stream: int) -> None:
        """Remove a stream that has made a bid."""
        del self._streams[stream]
        self._arbitration, informed = self._arbitration.leave(stream)
        self._inform(informed)

    def require_primary(self, election_id: int | None) -> None:
        """Raise RequestError, PERMISSION_DENIED, unless this is the primary's election id."""
        arbitration = self._arbitration
        if arbitration.primary is None:
            raise permission_denied(f"device {self.switch.device_id} has no primary controller")
        if election_id != arbitration.highest_id:
            raise permission_denied(
                f"election id {election_id} is not that of the primary controller of device {self.switch.device_id}"
            )

    def _inform(self, streams: tuple[int, ...]) -> None:
        for stream in streams:
            self._streams[stream](p4r.StreamMessageResponse(arbitration=self._advisory(stream)))

    def _advisory(self, stream: int) -> p4r.MasterArbitrationUpdate:
        primary, highest_id = self._arbitration.primary, self._arbitration.highest_id
        if primary is None:
            status = rpc_status.Status(code=rpc_code.NOT_FOUND, message="there is no primary controller")
        elif primary == stream:
            status = rpc_status.Status(code=rpc_code.OK, message="you are the primary controller")
        else:
            status = rpc_status.Status(code=rpc_code.ALREADY_EXISTS, message="you are a backup controller")
        return p4r.MasterArbitrationUpdate(
            device_id=self.switch.device_id,
            election_id=None if highest_id is None else U128.encode(highest_id),
            status=status,
        )

    # ---- packets ----------------------------------------------------------------------------------------------------

    def packet_out(self, stream: int, message: p4r.PacketOut) -> None:
        """Send a packet into the switch's CPU port, metadata first.

        Raises RequestError: PERMISSION_DENIED unless the stream is the primary's, FAILED_PRECONDITION before a pipeline
        has been set, INVALID_ARGUMENT or OUT_OF_RANGE for unknown metadata and for a packet that the switch cannot
        take, UNIMPLEMENTED if the CPU port cannot be reached.
        """
        if self._arbitration.primary != stream:
            raise permission_denied(
                f"a PacketOut is for the primary controller of device {self.switch.device_id} alone"
            )
        octets = encode_packet_out(self.require_target().schema.packet_out, message)
        if self._send_packet is None:
            raise unimplemented(
                "a PacketOut is not supported: this server does not reach the CPU ports of its switches"
            )
        try:
            self._send_packet(self.switch.name, octets)
        except ValueError as error:
            raise invalid_argument(f"PacketOut: {error}") from None

    def packet_in(self, octets: bytes) -> None:
        """Send the primary controller a packet from the CPU port; without a primary the packet is lost."""
        primary = self._arbitration.primary
        if primary is None or self._target is None:
            return
        header = self._target.schema.packet_in
        packet = decode_packet_in(header, octets)
        if packet is None:
            _LOG.warning(
                "switch %s sent its CPU port %d bytes without a %s header", self.switch.name, len(octets), header.name
            )
            return
        self._streams[primary](p4r.StreamMessageResponse(packet=packet))

    # ---- pipeline ---------------------------------------------------------------------------------------------------

    def require_power(self) -> None:
        """Raise RequestError, UNAVAILABLE, while the switch is down."""
        if not self.switch.power.is_on:
            raise RequestError(grpc.StatusCode.UNAVAILABLE, f"switch {self.switch.name} is down")

    def _lose_pipeline(self) -> None:
        self._target = None

    def require_target(self) -> Target:
        """Return the switch with its pipeline. Raises RequestError, FAILED_PRECONDITION, before one has been set."""
        if self._target is None:
            # Clients match this text.
            raise failed_precondition("No forwarding pipeline config set for this device")
        return self._target

    def configure(
        self,
        action: p4r.SetForwardingPipelineConfigRequest.Action.ValueType,
        config: p4r.ForwardingPipelineConfig,
    ) -> None:
        """Verify a pipeline and, if the action says so, commit it, which empties the switch.

        A fabric runs the program that it was compiled for, and refuses any other. Raises RequestError if nothing was
        changed: INVALID_ARGUMENT for a missing or corrupt pipeline, UNIMPLEMENTED for another program or an unsupported
        action.
        """
        request = p4r.SetForwardingPipelineConfigRequest
        if action in (request.VERIFY_AND_SAVE, request.COMMIT):
            raise unimplemented(f"{request.Action.Name(action)} is not supported; use VERIFY_AND_COMMIT")
        if action not in (request.VERIFY, request.VERIFY_AND_COMMIT, request.RECONCILE_AND_COMMIT):
            given = f"has the unknown number {action}" if action else "is not set"
            raise invalid_argument(f"the action of SetForwardingPipelineConfig {given}")
        pipeline = self._verify(config)
        current = self._target
        if action == request.RECONCILE_AND_COMMIT and current is not None:
            if not pipeline.is_same_as(current.pipeline):
                raise unimplemented("RECONCILE_AND_COMMIT of another P4Info is not supported; use VERIFY_AND_COMMIT")
            self._target = Target(self.switch, pipeline, current.notes)
        elif action != request.VERIFY:
            self.switch.clear()
            self._target = Target(self.switch, pipeline)

    def _verify(self, config: p4r.ForwardingPipelineConfig) -> Pipeline:
        compiled = self._program.message
        # Parsing is slow, and every switch of a fabric gets the same pipeline.
        if config.p4info == compiled.p4info and config.p4_device_config == compiled.p4_device_config:
            return Pipeline(config, self._program.schema, self._program.program)
        pipeline = load_pipeline(config)
        if pipeline.program.digest != self._program.program.digest:
            raise RequestError(
                grpc.StatusCode.UNIMPLEMENTED,
                f"the fabric was compiled for {self._program.program} and cannot run {pipeline.program}",
            )
        return pipeline
