"""A controller behind TLS, in this process, and the credentials of those who call it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from controller.access.authority import Authority
from controller.access.identity import Role
from controller.access.tokens import new_token, token_entry
from controller.clock import WallClock
from controller.config import ControllerConfig
from controller.process.core import ControllerCore
from controller.process.server import Server
from controller.southbound.recording import RecordingSouthbound
from controller.store.store import Store
from controller.switch_addresses import SwitchAddress
from hostlib.credentials import Credentials
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import ClosSpecification

TOPOLOGY = ClosSpecification(
    kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
)
TENANTS = ("vision", "speech")
CLIENTS = (
    *((f"job-{tenant}", tenant, Role.JOB, tenant) for tenant in TENANTS),
    ("agent-h0", "h0", Role.AGENT, ""),
    ("operator", "alice", Role.OPERATOR, ""),
    ("viewer", "grafana", Role.VIEWER, ""),
)


class Trial:
    """A folder with an authority, a controller's certificate, and one certificate for each of ``CLIENTS``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority.new(days=1)
        self.authority.pair.write(folder, "ca")
        self.authority.server("controller", ["localhost", "127.0.0.1"], days=1).write(folder, "controller")
        for file, name, role, tenant in CLIENTS:
            self.authority.client(name, role, tenant, days=1).write(folder, file)

    @property
    def tls(self) -> Mapping[str, Path]:
        """The configuration of TLS with client certificates."""
        return {"certificate": self.folder / "controller.pem", "key": self.folder / "controller.key", "ca": self.ca}

    @property
    def ca(self) -> Path:
        """The file of the authority's certificate."""
        return self.folder / "ca.pem"

    def certificate(self, file: str, token: str | None = None) -> Credentials:
        """The credentials of a client with a certificate, and maybe a token too."""
        certificate, key = self.folder / f"{file}.pem", self.folder / f"{file}.key"
        return Credentials(ca=self.ca, certificate=certificate, key=key, token=token)

    def token(self, name: str, role: Role, tenant: str = "", expires: datetime | None = None) -> str:
        """Add a token to the file of tokens; returns it."""
        token = new_token()
        with (self.folder / "tokens.yaml").open("a") as file:
            file.write(f"- {token_entry(token, name, role, tenant, expires)}\n")
        return token


@dataclass(frozen=True)
class Secured:
    """A controller that answers at ``address``."""

    address: str
    core: ControllerCore
    southbound: RecordingSouthbound


@asynccontextmanager
async def secured(store: Store | None = None, **settings: Any) -> AsyncIterator[Secured]:
    """Serve a controller with these settings of its configuration, over a southbound that records."""
    switches = tuple(SwitchAddress(name=name, address="127.0.0.1:1") for name in TOPOLOGY.build().switches)
    config = ControllerConfig(listen="127.0.0.1:0", topology=TOPOLOGY, switches=switches, policy="crux", **settings)
    fabric = TOPOLOGY.build()
    southbound = RecordingSouthbound()
    async with Server.bound(config) as server:
        core = ControllerCore(
            config, Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed)), southbound, WallClock(), store
        )
        async with server.serving(core.handlers):
            yield Secured(server.address, core, southbound)
