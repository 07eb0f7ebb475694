"""One device of the server: its switch, its clients and its pipeline."""

import logging
from collections.abc import Callable

import grpc
from finsy.proto import p4r

from emulator.compiler.program import Program
from emulator.observations import PacketIn
from emulator.p4runtime.clients import Clients
from emulator.p4runtime.controller_packets import decode_packet_in, encode_packet_out
from emulator.p4runtime.digests import Digests
from emulator.p4runtime.errors import (
    RequestError,
    failed_precondition,
    invalid_argument,
    unimplemented,
)
from emulator.p4runtime.pipeline import Pipeline, load_pipeline
from emulator.p4runtime.roles import Permissions
from emulator.p4runtime.target import Target
from emulator.switch import EmulatedSwitch

SendPacket = Callable[[str, bytes], None]
"""Sends a packet from a switch's control plane, by the switch's name; raises ValueError if it cannot."""

LoadProgram = Callable[[str, Program], None]
"""Gives a switch a program, by the switch's name; raises ValueError if the fabric cannot take it."""

_LOG = logging.getLogger(__name__)


class Device:
    """A switch as P4Runtime shows it; ``program`` is the pipeline whose program it has, None where it has none.

    Without ``send_packet`` its CPU port cannot be reached, and without ``load`` it takes no other program.
    """

    def __init__(
        self,
        switch: EmulatedSwitch,
        program: Pipeline | None,
        send_packet: SendPacket | None,
        load: LoadProgram | None = None,
    ) -> None:
        self.switch = switch
        self._program = program
        self._send_packet = send_packet
        self._load = load
        self.clients = Clients(switch.device_id)
        self._target: Target | None = None
        switch.power.listen(self._lose_pipeline)

    def require_primary(self, election_id: int | None, role: str) -> Permissions:
        """Return what a role may do, if this is its primary's election id. Raises RequestError, PERMISSION_DENIED."""
        return self.clients.require_primary(election_id, role)

    # ---- packets ----------------------------------------------------------------------------------------------------

    def packet_out(self, stream: int, message: p4r.PacketOut) -> None:
        """Send a packet into the switch's CPU port, metadata first.

        Raises RequestError: PERMISSION_DENIED unless the stream is that of its role's primary, FAILED_PRECONDITION
        before a pipeline has been set, INVALID_ARGUMENT or OUT_OF_RANGE for unknown metadata and for a packet that the
        switch cannot take, UNIMPLEMENTED if the CPU port cannot be reached.
        """
        self.clients.require_stream_of_primary(stream)
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
        """Send a packet from the CPU port to the primaries whose roles receive packets; without any it is lost."""
        if self._target is None:
            return
        header = self._target.schema.packet_in
        packet = decode_packet_in(header, octets)
        if packet is None:
            _LOG.warning(
                "switch %s sent its CPU port %d bytes without a %s header", self.switch.name, len(octets), header.name
            )
            return
        for send in self.clients.receivers():
            send(p4r.StreamMessageResponse(packet=packet))

    def learn(self, digest: PacketIn) -> None:
        """Tell the primaries whose roles receive packets of a digest, if a controller has enabled it."""
        if self._target is not None:
            self._target.digests.learn(digest.digest, digest.octets, digest.time_ps)

    def acknowledge(self, stream: int, message: p4r.DigestListAck) -> None:
        """Let the values of a list of digests be told again.

        Raises RequestError: PERMISSION_DENIED unless the stream is that of its role's primary, NOT_FOUND for an unknown
        list, FAILED_PRECONDITION before a pipeline has been set.
        """
        self.clients.require_stream_of_primary(stream)
        self.require_target().digests.acknowledge(message)

    # ---- pipeline ---------------------------------------------------------------------------------------------------

    def require_power(self) -> None:
        """Raise RequestError, UNAVAILABLE, while the switch is down."""
        if not self.switch.power.is_on:
            raise RequestError(grpc.StatusCode.UNAVAILABLE, f"switch {self.switch.name} is down")

    def _lose_pipeline(self) -> None:
        self._set_target(None)

    def _set_target(self, target: Target | None) -> None:
        if self._target is not None and (target is None or target.digests is not self._target.digests):
            self._target.digests.end()
        self._target = target

    def require_target(self) -> Target:
        """Return the switch with its pipeline. Raises RequestError, FAILED_PRECONDITION, before one has been set."""
        if self._target is None:
            # Clients match this text.
            raise failed_precondition("No forwarding pipeline config set for this device")
        return self._target

    def verify(
        self,
        action: p4r.SetForwardingPipelineConfigRequest.Action.ValueType,
        config: p4r.ForwardingPipelineConfig,
    ) -> Pipeline:
        """Check a pipeline, and what is to be done with it.

        Raises RequestError: INVALID_ARGUMENT for a missing or corrupt pipeline, UNIMPLEMENTED for an unsupported
        action, and for another program where the switch takes none.
        """
        request = p4r.SetForwardingPipelineConfigRequest
        if action in (request.VERIFY_AND_SAVE, request.COMMIT):
            raise unimplemented(f"{request.Action.Name(action)} is not supported; use VERIFY_AND_COMMIT")
        if action not in (request.VERIFY, request.VERIFY_AND_COMMIT, request.RECONCILE_AND_COMMIT):
            given = f"has the unknown number {action}" if action else "is not set"
            raise invalid_argument(f"the action of SetForwardingPipelineConfig {given}")
        known = None if self._program is None else self._program.message
        # Parsing is slow, and every switch of a fabric may get the same pipeline.
        if known and config.p4info == known.p4info and config.p4_device_config == known.p4_device_config:
            assert self._program is not None
            return Pipeline(config, self._program.schema, self._program.program)
        pipeline = load_pipeline(config)
        if self._load is None and not self.has_program_of(pipeline):
            raise unimplemented(f"the fabric was compiled for {self._own} and cannot run {pipeline.program}")
        return pipeline

    def has_program_of(self, pipeline: Pipeline) -> bool:
        """Return whether the switch has the program of a pipeline."""
        return self._program is not None and self._program.program.digest == pipeline.program.digest

    def configure(
        self,
        action: p4r.SetForwardingPipelineConfigRequest.Action.ValueType,
        pipeline: Pipeline,
        program: Program | None = None,
    ) -> None:
        """Commit a verified pipeline, if the action says so, which empties the switch.

        ``program`` is that of the pipeline, and is needed where the switch has another one. Raises RequestError if
        nothing was changed: UNIMPLEMENTED to reconcile with another pipeline, FAILED_PRECONDITION where the fabric
        cannot take the program.
        """
        request = p4r.SetForwardingPipelineConfigRequest
        current = self._target
        if action == request.RECONCILE_AND_COMMIT and current is not None:
            if not pipeline.is_same_as(current.pipeline):
                raise unimplemented("RECONCILE_AND_COMMIT of another P4Info is not supported; use VERIFY_AND_COMMIT")
            self._set_target(Target(self.switch, pipeline, current.notes, current.digests))
        elif action != request.VERIFY:
            self._take(pipeline, program)
            self.switch.clear()
            self._set_target(Target(self.switch, pipeline, digests=Digests(self.clients.receivers)))

    @property
    def _own(self) -> str:
        return "no program" if self._program is None else str(self._program.program)

    def _take(self, pipeline: Pipeline, program: Program | None) -> None:
        """Give the switch the pipeline's program, if it has another."""
        if self.has_program_of(pipeline):
            return
        assert self._load is not None
        assert program is not None
        try:
            self._load(self.switch.name, program)
        except ValueError as error:
            raise failed_precondition(str(error)) from None
        self._program = pipeline
