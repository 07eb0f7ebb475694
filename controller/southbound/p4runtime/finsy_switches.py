"""Make the finsy switches of a fabric: pipeline, arbitration, credentials, and access to each."""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from finsy import P4Schema, Switch, SwitchOptions

from controller.access.tls_files import TlsFiles
from controller.background import Worker
from controller.events import BurstLog, EventKind
from controller.southbound.fencing import Grant, TakeoverBarrier, first_election_id
from controller.southbound.p4runtime.access import SwitchAccess
from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.fencing import TermArbitrator
from controller.southbound.p4runtime.reading import EntityReader
from controller.southbound.p4runtime.roles import RoleArbitrator, role_config
from controller.southbound.p4runtime.states import State
from controller.southbound.tls import finsy_credentials
from controller.switch_addresses import SwitchAddress

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
        pipeline: Path,
        election_id: int,
        grant: Grant | None,
        tls: TlsFiles | None,
        worker: Worker,
        on_ready: Callable[[Switch], Coroutine[Any, Any, None]],
        *,
        is_beside_others: bool,
    ) -> None:
        p4info = pipeline / "trainyard.p4info.txtpb"
        schema = P4Schema(p4info)
        self._worker = worker
        self._encoder = Encoder(schema)
        self._reader = EntityReader(schema, self._encoder, worker)
        self._grant = grant
        self.role_config = role_config(schema) if is_beside_others else None
        self._election_id = election_id
        self._barrier = barrier
        self._pushes = BurstLog(_LOG)
        self._options = SwitchOptions(
            p4info=p4info,
            p4blob=None if is_beside_others else pipeline / "trainyard.json",
            initial_election_id=election_id,
            ready_handler=on_ready,
            channel_credentials=finsy_credentials(tls),
        )

    def make(self, address: SwitchAddress) -> Switch:
        """Make a switch."""
        switch = Switch(address.name, address.address, self._options(device_id=address.device_id))
        # finsy has no parameter for an arbitrator.
        if self._grant is not None:
            first_id = first_election_id(self._election_id, self._grant.term)
            switch._arbitrator = TermArbitrator(first_id, self._barrier, self.role_config)
        elif self.role_config is not None:
            switch._arbitrator = RoleArbitrator(self._election_id, self.role_config)
        _log_pipeline_pushes(switch, self._pushes)
        return switch

    def access(self, switch: Switch, on_base: Callable[[State], Awaitable[None]] | None) -> SwitchAccess:
        """Return access to a connected switch; see SwitchAccess for ``on_base``."""
        return SwitchAccess(switch, self._encoder, self._reader, self._grant, self._worker, on_base)


def _log_pipeline_pushes(switch: Switch, log: BurstLog) -> None:
    """Log whenever a switch gets the pipeline, of which finsy tells nobody."""
    push = switch._set_pipeline_config_request

    async def push_and_log(**options: Any) -> Any:
        answer = await push(**options)
        log.tell(EventKind.PIPELINE_PUSHED, "switch %s: pipeline pushed", switch.name, switch=switch.name)
        return answer

    vars(switch)["_set_pipeline_config_request"] = push_and_log
