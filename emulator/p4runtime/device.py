"""One device of the server: its switch, the controllers that bid for it and the pipeline that it was given."""

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
    unimplemented,
)
from emulator.p4runtime.pipeline import Pipeline, load_pipeline
from emulator.p4runtime.target import Target
from emulator.switch import EmulatedSwitch

Send = Callable[[p4r.StreamMessageResponse], None]

SendPacket = Callable[[str, bytes], None]
"""Lets the control plane of a switch, by name, send a packet into its CPU port; raises ValueError where it cannot."""

_LOG = logging.getLogger(__name__)


class Device:
    """A switch as P4Runtime sees it. ``program`` is the pipeline that its fabric was compiled for.

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
        """A stream bids for the device; all whom it concerns are told.

        Raises RequestError, INVALID_ARGUMENT, where another stream has the id: the stream must then end.
        """
        try:
            self._arbitration, informed = self._arbitration.bid(stream, election_id)
        except ElectionIdInUseError as error:
            raise invalid_argument(f"{error} on device {self.switch.device_id}") from None
        self._streams[stream] = send
        self._inform(informed)

    def leave(self, stream: int) -> None:
        """A stream that has bid for the device ends."""
        del self._streams[stream]
        self._arbitration, informed = self._arbitration.leave(stream)
        self._inform(informed)

    def require_primary(self, election_id: int | None) -> None:
        """Raises RequestError, PERMISSION_DENIED, unless this is the election id of the primary."""
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
        """Let the switch receive a packet on its CPU port, metadata first.

        Raises RequestError: PERMISSION_DENIED unless the stream is the primary's, FAILED_PRECONDITION before a
        pipeline has been set, INVALID_ARGUMENT or OUT_OF_RANGE for metadata that the program does not have and for a
        packet that the switch cannot take, UNIMPLEMENTED where the CPU port cannot be reached.
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
        """Hand the primary controller what the switch sent to its CPU port; nobody gets it where there is none."""
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
        """Raises RequestError, UNAVAILABLE, while the switch is down."""
        if not self.switch.power.is_on:
            raise RequestError(grpc.StatusCode.UNAVAILABLE, f"switch {self.switch.name} is down")

    def _lose_pipeline(self) -> None:
        self._target = None

    def require_target(self) -> Target:
        """The switch with its pipeline. Raises RequestError, FAILED_PRECONDITION, before one has been set."""
        if self._target is None:
            # Clients know this state by these words.
            raise failed_precondition("No forwarding pipeline config set for this device")
        return self._target

    def configure(
        self,
        action: p4r.SetForwardingPipelineConfigRequest.Action.ValueType,
        config: p4r.ForwardingPipelineConfig,
    ) -> None:
        """Verify a pipeline and, where the action says so, commit it, which empties the switch.

        A fabric runs the program that it was compiled for: another is refused. Raises RequestError and has then
        changed nothing: INVALID_ARGUMENT where the pipeline is missing or corrupt, UNIMPLEMENTED for another program
        or an action that is not supported.
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
        # Parsing takes a while and every switch of a fabric is given the same.
        if config.p4info == compiled.p4info and config.p4_device_config == compiled.p4_device_config:
            return Pipeline(config, self._program.schema, self._program.program)
        pipeline = load_pipeline(config)
        if pipeline.program.digest != self._program.program.digest:
            raise RequestError(
                grpc.StatusCode.UNIMPLEMENTED,
                f"the fabric was compiled for {self._program.program} and cannot run {pipeline.program}",
            )
        return pipeline
