"""What emulated switches accept to be written, in the order in which all of them do."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from emulator.p4runtime.device import Device
from emulator.p4runtime.roles import Permissions
from emulator.switch import EmulatedSwitch

_BASE_ID = (1 << 64) + 1
_BIDS_PER_TERM = 1 << 16


@dataclass(frozen=True)
class AcceptedWrite:
    """A request that a switch was about to carry out, and the term of who sent it."""

    switch: str
    term: int


@contextmanager
def accepted_writes(switches: Iterable[EmulatedSwitch] = ()) -> Iterator[list[AcceptedWrite]]:
    """All that is accepted meanwhile, by these or else by all; terms are those of controllers with the default id."""
    among = {id(switch) for switch in switches}
    accepted: list[AcceptedWrite] = []
    require_primary = Device.require_primary

    def note(device: Device, election_id: int | None, role: str) -> Permissions:
        permissions = require_primary(device, election_id, role)
        assert election_id is not None
        if among and id(device.switch) not in among:
            return permissions
        accepted.append(AcceptedWrite(device.switch.name, (election_id - _BASE_ID) // _BIDS_PER_TERM))
        return permissions

    with patch.object(Device, "require_primary", note):
        yield accepted


def interleaved(accepted: list[AcceptedWrite]) -> list[str]:
    """Writes that were accepted anywhere after one of a later term was: of a planner that was not the only one."""
    wrong, newest = [], AcceptedWrite("", 0)
    for write in accepted:
        if write.term < newest.term:
            wrong.append(
                f"{write.switch} accepted a write of term {write.term} after {newest.switch} one of {newest.term}"
            )
        else:
            newest = write
    return wrong
