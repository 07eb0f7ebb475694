"""How a switch that speaks OpenFlow is found: the same keys in a fabric file and in a controller's configuration."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from topologies.server_addresses import ServerAddress, check_server_address

_HEXADECIMAL = re.compile(r"(?:0x)?[0-9a-fA-F]{1,16}")
_UNIX_SOCKET = re.compile(r"unix:[!-~]{1,300}")
_TCP = "tcp:"


class Queues(StrEnum):
    """How a switch finds the queue in which a packet waits."""

    DSCP = "dscp"
    """Its ports classify packets by DSCP; the entries name no queue."""
    SET_QUEUE = "set_queue"
    """The entries name the queue, whose number is the level."""


def _datapath_id(value: object) -> object:
    """Read hexadecimal digits, as switches show them."""
    if isinstance(value, str):
        if _HEXADECIMAL.fullmatch(value) is None:
            raise ValueError("expected a datapath id: up to 16 hexadecimal digits")
        return int(value, 16)
    return value


def _ovsdb(address: str) -> str:
    if _UNIX_SOCKET.fullmatch(address):
        return address
    if address.startswith(_TCP):
        check_server_address(address.removeprefix(_TCP))
        return address
    raise ValueError("expected unix:PATH or tcp:HOST:PORT")


DatapathId = Annotated[int, BeforeValidator(_datapath_id), Field(strict=True, ge=1, lt=1 << 64)]
"""A number of 64 bits, or its hexadecimal digits."""


class OpenFlowSpecification(BaseModel):
    """A switch that speaks OpenFlow 1.3 or 1.5."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    datapath_id: DatapathId
    connect: ServerAddress | None = None
    """Where the switch listens; None: it connects to the controller."""
    ovsdb: Annotated[str, AfterValidator(_ovsdb)] | None = None
    """Where the database of an Open vSwitch answers, which has the settings of its bridge; None: they are not read."""
    queues: Queues = Queues.DSCP
    certificate_name: Annotated[str, Field(pattern=r"^[!-~]{1,253}$")] | None = None
    """The name that its certificate has to be for; None: any certificate of the authority will do."""

    @property
    def place(self) -> str:
        """Where the switch is, in words."""
        return self.connect or f"datapath {self.datapath_id:#x}"
