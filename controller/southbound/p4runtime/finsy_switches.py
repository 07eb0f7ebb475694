"""Make the finsy switches of a fabric: pipeline, arbitration, credentials, and access to each."""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from finsy import Switch, SwitchOptions
from finsy.proto import stratum

from controller.access.tls_files import TlsFiles
from controller.background import Worker
from controller.events import BurstLog, EventKind
from controller.southbound.fencing import Grant, TakeoverBarrier, first_election_id
from controller.southbound.p4runtime.access import SwitchAccess
from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.fencing import TermArbitrator
from controller.southbound.p4runtime.held_program import hear_of_missing_programs, held_config
from controller.southbound.p4runtime.large_answers import take_large_answers
from controller.southbound.p4runtime.programs import Program, Programs
from controller.southbound.p4runtime.reading import EntityReader
from controller.southbound.p4runtime.reconnecting import ConnectionLostError
from controller.southbound.p4runtime.roles import RoleArbitrator, role_config
from controller.southbound.p4runtime.states import State
from controller.southbound.tls import finsy_credentials
from controller.switch_addresses import SwitchAddress
from topologies.targets import Target

_LOG = logging.getLogger(__name__)


class FinsySwitches:
    """Makes switches, none of them connected, and access to them.

    With a ``grant`` they bid election ids of its term from ``election_id`` on, and wait at the ``barrier``.
    Without one they bid ``election_id``. Beside a client that fills base routing they bid in a role and set no
    pipeline.
    """

    def __init__(
        self,
        barrier: TakeoverBarrier,
        programs: Programs,
        election_id: int,
        grant: Grant | None,
        tls: TlsFiles | None,
        worker: Worker,
        on_ready: Callable[[Switch], Coroutine[Any, Any, None]],
        *,
        is_beside_others: bool,
    ) -> None:
        self._programs = programs
        self._worker = worker
        self._grant = grant
        self._is_beside_others = is_beside_others
        self._election_id = election_id
        self._barrier = barrier
        self._pushes = BurstLog(_LOG)
        self._options = SwitchOptions(
            initial_election_id=election_id, ready_handler=on_ready, channel_credentials=finsy_credentials(tls)
        )
        self._codecs: dict[Program, _Codec] = {}
        self._codec_of: dict[str, _Codec] = {}

    def make(self, address: SwitchAddress, target: Target) -> Switch:
        """Make a switch."""
        codec = self._codec_of[address.name] = self._codec(self._programs.of(target))
        program = codec.program
        options = self._options(
            device_id=address.device_id,
            p4info=program.schema.p4info,
            p4blob=None if self._is_beside_others else program.device_config,
        )
        switch = Switch(address.name, address.address, options)
        # finsy has no parameter for an arbitrator.
        if self._grant is not None:
            first_id = first_election_id(self._election_id, self._grant.term)
            switch._arbitrator = TermArbitrator(first_id, self._barrier, codec.role_config)
        elif codec.role_config is not None:
            switch._arbitrator = RoleArbitrator(self._election_id, codec.role_config)
        hear_of_missing_programs(switch)
        take_large_answers(switch)
        _guard_pipeline_pushes(switch, program, self._pushes)
        return switch

    def role_config(self, switch: str) -> stratum.P4RoleConfig | None:
        """Return the config of the role that a switch is written to in; None: the default role."""
        return self._codec_of[switch].role_config

    def access(self, switch: Switch, on_base: Callable[[State], Awaitable[None]] | None) -> SwitchAccess:
        """Return access to a connected switch; see SwitchAccess for ``on_base``."""
        codec = self._codec_of[switch.name]
        return SwitchAccess(switch, codec.program, codec.encoder, codec.reader, self._grant, self._worker, on_base)

    def _codec(self, program: Program) -> "_Codec":
        if program not in self._codecs:
            encoder = Encoder(program.schema)
            reader = EntityReader(program.schema, encoder, self._worker)
            role = role_config(program.schema) if self._is_beside_others else None
            self._codecs[program] = _Codec(program, encoder, reader, role)
        return self._codecs[program]


@dataclass(frozen=True, slots=True)
class _Codec:
    """What all switches with the same program share."""

    program: Program
    encoder: Encoder
    reader: EntityReader
    role_config: stratum.P4RoleConfig | None


def _guard_pipeline_pushes(switch: Switch, program: Program, log: BurstLog) -> None:
    """Load no program for one target into another one; log whenever a switch gets its own, of which finsy is silent."""
    push = switch._set_pipeline_config_request

    async def push_and_log(**options: Any) -> Any:
        held = await held_config(switch)
        if held is not None and program.is_for_another_target(held.p4info):
            raise ConnectionLostError(program.difference_from(held.p4info))
        answer = await push(**options)
        log.tell(EventKind.PIPELINE_PUSHED, "switch %s: pipeline pushed", switch.name, switch=switch.name)
        return answer

    vars(switch)["_set_pipeline_config_request"] = push_and_log
