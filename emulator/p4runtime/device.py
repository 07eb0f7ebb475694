"""One device of the server: its switch, its clients and its pipeline."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import grpc
from finsy.proto import p4r

from emulator.observations import PacketIn
from emulator.p4runtime.clients import Clients
from emulator.p4runtime.controller_packets import decode_packet_in, encode_packet_out
from emulator.p4runtime.digests import Digests
from emulator.p4runtime.errors import (
    RequestError,
    failed_precondition,
    invalid_argument,
    not_found,
    unimplemented,
)
from emulator.p4runtime.idle import notifications
from emulator.p4runtime.pipeline import Pipeline, load_pipeline
from emulator.p4runtime.reconciliation import difference
from emulator.p4runtime.roles import Permissions
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_update
from emulator.switch import EmulatedSwitch

SendPacket = Callable[[str, bytes], None]
"""Sends a packet from a switch's control plane, by the switch's name; raises ValueError if it cannot."""

_LOG = logging.getLogger(__name__)


class Device:
    """A switch as P4Runtime shows it; ``program`` is the pipeline that its fabric was compiled for.

    Without ``send_packet`` its CPU port cannot be reached.
    """

    def __init__(self, switch: EmulatedSwitch, program: Pipeline, send_packet: SendPacket | None) -> None:
        self.switch = switch
        self._program = program
        self._send_packet = send_packet
        self.clients = Clients(switch.device_id)
        self._target: Target | None = None
        self._saved: Target | None = None
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
        for permissions, send in self.clients.primaries():
            if permissions.receives(packet):
                send(p4r.StreamMessageResponse(packet=packet))

    def learn(self, digest: PacketIn) -> None:
        """Tell the primaries whose roles include a digest of its values, if a controller has enabled it."""
        if self._target is not None:
            self._target.digests.learn(digest.digest, digest.octets, digest.time_ps)

    def tell_idle(self) -> None:
        """Tell the primaries of the entries in their roles that nobody has hit for their timeouts."""
        idle = self.switch.idle_entries()
        if idle and self._target is not None:
            for permissions, send in self.clients.primaries():
                for notification in notifications(self._target, idle, permissions):
                    send(p4r.StreamMessageResponse(idle_timeout_notification=notification))

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
        self._saved = None
        if self._target is not None and (target is None or target.digests is not self._target.digests):
            self._target.digests.end()
        self._target = target

    def require_target(self) -> Target:
        """Return the switch with its pipeline. Raises RequestError, FAILED_PRECONDITION, before one has been set."""
        if self._target is None:
            # Clients match this text.
            raise failed_precondition("No forwarding pipeline config set for this device")
        return self._target

    def addressed(self) -> Target:
        """Return what reads and writes mean: a saved pipeline that waits for its commit, or else the committed one.

        Raises RequestError, FAILED_PRECONDITION, before a pipeline has been set or saved.
        """
        return self.require_target() if self._saved is None else self._saved

    def configure(
        self,
        action: p4r.SetForwardingPipelineConfigRequest.Action.ValueType,
        config: p4r.ForwardingPipelineConfig | None,
    ) -> Iterator[None]:
        """Verify a pipeline and, if the action says so, save or commit it, step by step.

        A commit empties the switch; then it has what was written since the pipeline was saved. A reconciliation keeps
        everything. A fabric runs the program that it was compiled for, and refuses any other. Raises RequestError in
        the first step, and then has changed nothing: INVALID_ARGUMENT for a missing or corrupt pipeline, and for one
        under which the state cannot be kept; NOT_FOUND for a commit of nothing; UNIMPLEMENTED for another program.
        """
        request = p4r.SetForwardingPipelineConfigRequest
        if action == request.COMMIT:
            yield from self._commit_saved(config)
            return
        if action not in request.Action.values() or not action:
            given = f"has the unknown number {action}" if action else "is not set"
            raise invalid_argument(f"the action of SetForwardingPipelineConfig {given}")
        pipeline = self._verify(config or p4r.ForwardingPipelineConfig())
        if action == request.VERIFY_AND_SAVE:
            self._saved = Target(self.switch.shadow(), pipeline, log=[])
        elif action == request.VERIFY_AND_COMMIT:
            self._commit(pipeline)
        elif action == request.RECONCILE_AND_COMMIT:
            self._reconcile(pipeline)
        yield

    def _commit(self, pipeline: Pipeline) -> Target:
        target = Target(self.switch, pipeline, digests=Digests(self.clients.receivers))
        self.switch.clear()
        self._set_target(target)
        return target

    def _commit_saved(self, config: p4r.ForwardingPipelineConfig | None) -> Iterator[None]:
        if config is not None:
            raise invalid_argument("COMMIT takes no pipeline: it commits the one that was saved")
        if self._saved is None:
            raise not_found("no saved pipeline waits for its commit")
        updates = self._saved.log or ()
        target = self._commit(self._saved.pipeline)
        for update in updates:
            write_update(target, update)
            yield

    def _reconcile(self, pipeline: Pipeline) -> None:
        current = self._target
        if current is None:
            self._commit(pipeline)
            return
        if pipeline.is_same_as(current.pipeline):
            pipeline = replace(pipeline, schema=current.schema)  # which knows its texts
        else:
            changed = difference(current.schema, pipeline.schema)
            if changed is not None:
                raise invalid_argument(f"the state cannot be kept: {changed} differs; use VERIFY_AND_COMMIT")
            current.digests.rename(pipeline.schema)
        self._set_target(Target(self.switch, pipeline, current.notes, current.digests))

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
