"""One device of the server: its switch, its clients and its pipeline."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

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
    not_found,
    unimplemented,
)
from emulator.p4runtime.idle_timeouts import notifications
from emulator.p4runtime.pipeline import Pipeline, load_pipeline
from emulator.p4runtime.reconciliation import difference
from emulator.p4runtime.roles import Permissions
from emulator.p4runtime.target import Target
from emulator.p4runtime.update_log import UpdateLog
from emulator.p4runtime.write import write_batch, write_update
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
        self._saved: Target | None = None
        self._saved_program: Program | None = None
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

    def load(self, updates: Sequence[p4r.Update]) -> None:
        """Commit the pipeline of the fabric, and carry out updates without a controller.

        Raises BatchError, which has a result for each update; those that did not fail are done.
        """
        config = None if self._program is None else self._program.message
        for _ in self.configure(p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, config):
            pass
        write_batch(self.require_target(), updates)

    def addressed(self) -> Target:
        """Return what reads and writes mean: a saved pipeline that waits for its commit, or else the committed one.

        Raises RequestError, FAILED_PRECONDITION, before a pipeline has been set or saved.
        """
        return self.require_target() if self._saved is None else self._saved

    def program_to_compile(
        self,
        action: p4r.SetForwardingPipelineConfigRequest.Action.ValueType,
        config: p4r.ForwardingPipelineConfig | None,
    ) -> bytes | None:
        """Return the BMv2 JSON that ``configure`` needs compiled, None where the switch has the program already.

        Raises RequestError as ``configure`` does.
        """
        if action == p4r.SetForwardingPipelineConfigRequest.COMMIT or not self._is_known(action):
            return None
        pipeline = self._verify(config or p4r.ForwardingPipelineConfig())
        return None if self._has_program_of(pipeline) else pipeline.message.p4_device_config

    def configure(
        self,
        action: p4r.SetForwardingPipelineConfigRequest.Action.ValueType,
        config: p4r.ForwardingPipelineConfig | None,
        program: Program | None = None,
    ) -> Iterator[None]:
        """Verify a pipeline and, if the action says so, save or commit it, step by step.

        A commit empties the switch; then it has what was written since the pipeline was saved. A reconciliation keeps
        everything. ``program`` is that of the pipeline, and is needed where the switch has another one. Raises
        RequestError in the first step, and then has changed nothing: INVALID_ARGUMENT for a missing or corrupt
        pipeline, and for one under which the state cannot be kept; NOT_FOUND for a commit of nothing; UNIMPLEMENTED for
        another program where the switch takes none; FAILED_PRECONDITION where the fabric cannot take the program.
        """
        request = p4r.SetForwardingPipelineConfigRequest
        if action == request.COMMIT:
            yield from self._commit_saved(config)
            return
        if not self._is_known(action):
            given = f"has the unknown number {action}" if action else "is not set"
            raise invalid_argument(f"the action of SetForwardingPipelineConfig {given}")
        pipeline = self._verify(config or p4r.ForwardingPipelineConfig())
        if action == request.VERIFY_AND_SAVE:
            self._saved = Target(self.switch.shadow(program.resources if program else None), pipeline, log=UpdateLog())
            self._saved_program = program
        elif action == request.VERIFY_AND_COMMIT:
            self._commit(pipeline, program)
        elif action == request.RECONCILE_AND_COMMIT:
            self._reconcile(pipeline, program)
        yield

    @staticmethod
    def _is_known(action: p4r.SetForwardingPipelineConfigRequest.Action.ValueType) -> bool:
        return action != 0 and action in p4r.SetForwardingPipelineConfigRequest.Action.values()

    def _commit(self, pipeline: Pipeline, program: Program | None) -> Target:
        self._take(pipeline, program)
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
        target = self._commit(self._saved.pipeline, self._saved_program)
        for update in updates:
            write_update(target, update)
            yield

    def _reconcile(self, pipeline: Pipeline, program: Program | None) -> None:
        current = self._target
        if current is None:
            self._commit(pipeline, program)
            return
        if pipeline.is_same_as(current.pipeline):
            pipeline = replace(pipeline, schema=current.schema)  # which knows its texts
        else:
            is_another = not self._has_program_of(pipeline)
            changed = "the program" if is_another else difference(current.schema, pipeline.schema)
            if changed is not None:
                raise invalid_argument(f"the state cannot be kept: {changed} differs; use VERIFY_AND_COMMIT")
            current.digests.rename(pipeline.schema)
        self._set_target(Target(self.switch, pipeline, current.notes, current.digests))

    def _verify(self, config: p4r.ForwardingPipelineConfig) -> Pipeline:
        known = None if self._program is None else self._program.message
        # Parsing is slow, and every switch of a fabric may get the same pipeline.
        if known and config.p4info == known.p4info and config.p4_device_config == known.p4_device_config:
            assert self._program is not None
            return Pipeline(config, self._program.schema, self._program.program)
        pipeline = load_pipeline(config)
        if self._load is None and not self._has_program_of(pipeline):
            raise unimplemented(f"the fabric was compiled for {self._own} and cannot run {pipeline.program}")
        return pipeline

    def _has_program_of(self, pipeline: Pipeline) -> bool:
        return self._program is not None and self._program.program.digest == pipeline.program.digest

    @property
    def _own(self) -> str:
        return "no program" if self._program is None else str(self._program.program)

    def _take(self, pipeline: Pipeline, program: Program | None) -> None:
        """Give the switch the pipeline's program, if it has another."""
        if self._has_program_of(pipeline):
            return
        assert self._load is not None
        assert program is not None
        try:
            self._load(self.switch.name, program)
        except ValueError as error:
            raise failed_precondition(str(error)) from None
        self._program = pipeline
