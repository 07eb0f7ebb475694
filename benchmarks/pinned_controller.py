"""A controller process on one core and emulated switches on the other, with what the system says of the process."""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.client import Operations, OperationsError
from controller.api.operations.methods import LIST_SWITCHES
from controller.config import ControllerConfig, LeadershipConfig
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from hostlib import Credentials
from topologies.specification import ClosSpecification

CONTROLLER_CORE, CLIENT_CORE = 0, 1
CLOS = ClosSpecification(
    kind="clos", tors=12, aggs=8, hosts_per_tor=4, nics_per_host=8, host_link_gbps=800, uplink_gbps=100
)
"""20 switches and 48 hosts."""

_ROOT = Path(__file__).resolve().parent.parent
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@contextmanager
def started_on(core: int) -> Iterator[None]:
    """Start child processes on this core while the context lasts."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@asynccontextmanager
async def emulated_switches(topology: ClosSpecification) -> AsyncIterator[tuple[SwitchAddress, ...]]:
    """Run ``trainyard emulator`` on a topology, on the clients' core; yield the addresses of its switches."""
    with tempfile.TemporaryDirectory() as folder, started_on(CLIENT_CORE):
        path = Path(folder) / "topology.yaml"
        path.write_text(json.dumps({"topology": topology.model_dump(mode="json")}))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trainyard", "emulator", "--topology", str(path), "--listen", "127.0.0.1:0"),
            stdout=asyncio.subprocess.PIPE,
            cwd=_ROOT,
        )
        try:
            assert process.stdout is not None
            await process.stdout.readline()
            rows = [(await process.stdout.readline()).decode().split() for _ in topology.build().switches]
            yield tuple(
                SwitchAddress(name=name, address=address, device_id=int(number)) for number, name, address in rows
            )
        finally:
            process.terminate()
            await process.wait()


@asynccontextmanager
async def pinned_controller(
    folder: Path, log: Path | None = None, **options: object
) -> AsyncIterator["PinnedController"]:
    """Run emulated switches, and a controller of them with a database in ``folder`` and the default leases."""
    async with emulated_switches(CLOS) as switches:
        config = ControllerConfig.model_validate(
            {
                "listen": "127.0.0.1:0",
                "topology": CLOS,
                "switches": switches,
                "database": str(folder / "controller.db"),
                "leadership": LeadershipConfig(name="benchmark"),
                **options,
            }
        )
        process = ControllerProcess(config, log=log)
        with started_on(CONTROLLER_CORE):
            await process.__aenter__()
        try:
            yield PinnedController(process.address, process.pid)
        finally:
            await process.__aexit__(None, None, None)


@asynccontextmanager
async def bare_server() -> AsyncIterator["PinnedController"]:
    """Run ``bare_server.py`` on the controller's core."""
    with started_on(CONTROLLER_CORE):
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(_ROOT / "benchmarks" / "bare_server.py"), stdout=asyncio.subprocess.PIPE
        )
    try:
        assert process.stdout is not None
        yield PinnedController((await process.stdout.readline()).decode().strip(), process.pid)
    finally:
        process.terminate()
        await process.wait()


class PinnedController:
    """A running controller or other server: its address, and its use of the machine."""

    def __init__(self, address: str, pid: int) -> None:
        self.address = address
        self.pid = pid

    @property
    def memory_bytes(self) -> int:
        """Its resident memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def processor_s(self) -> float:
        """The processor time that it has taken so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * _TICK_S


def wait_until_ready(address: str, credentials: Credentials | None = None) -> None:
    """Wait until a controller leads and has written base routing to all its switches."""
    with Operations(address, credentials) as operations:
        while not _is_ready(operations):
            time.sleep(0.1)


def _is_ready(operations: Operations) -> bool:
    try:
        return all(switch.condition == wire.CAUGHT_UP for switch in operations.list(LIST_SWITCHES))
    except OperationsError:
        return False  # it does not lead yet


async def idle_timer_worst_s(core: int, duration_s: float, period_s: float = 0.01) -> float:
    """The worst lateness of a timer in an idle process on a core: what the machine itself adds."""
    program = (
        f"import time\nend = time.monotonic() + {duration_s}\nworst = 0.0\n"
        "while (now := time.monotonic()) < end:\n"
        f"    time.sleep({period_s})\n    worst = max(worst, time.monotonic() - now - {period_s})\nprint(worst)"
    )
    with started_on(core):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, cwd=_ROOT
        )
    assert process.stdout is not None
    worst_s = float((await process.stdout.read()).decode())
    await process.wait()
    return worst_s
