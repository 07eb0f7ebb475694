"""A controller process with its page, over emulated switches, jobs of a client, and Chromium."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from emulator.clock import VirtualClock
from emulator.compiler.program import compile_program
from emulator.fabric import EmulatedFabric
from emulator.host_options import HostOptions
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from experiments.scenarios.controller_process import ControllerProcess
from hostlib.client import Client
from hostlib.types import Flow, FlowGroup, Job, Nic, Profile
from p4src import P4INFO, PROGRAM
from tests.integration.fabrics import ServedFabric
from tests.patience import PATIENCE_S
from topologies.specification import ClosSpecification

CLOS = ClosSpecification(
    kind="clos", tors=4, aggs=2, hosts_per_tor=4, nics_per_host=2, host_link_gbps=100, uplink_gbps=100
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NO_CHROMIUM = "not tried in a browser: there is no chromium (Debian's package of that name)"
PATIENCE_MS = PATIENCE_S * 1000


@dataclass(frozen=True)
class Live:
    """A running controller, the switches that it writes to, and a client of it."""

    served: ServedFabric
    controller: ControllerProcess
    client: Client

    async def register(self, name: str, hosts: Sequence[str], *, gpus: int = 8, size_bytes: int = 10**9) -> None:
        """Register a job that sends around a ring of hosts, and wait until it is planned for."""
        self.client.register_job(Job(name, tuple(hosts), gpus, Profile(compute_s=1.0, comm_start=0.5, work=gpus)))
        ring = zip(hosts, [*hosts[1:], hosts[0]], strict=True)
        flows = tuple(Flow(Nic(source), Nic(destination), size_bytes) for source, destination in ring)
        self.client.register_flow_groups(name, [FlowGroup("ring", flows)])
        assert await self.client.acknowledged(name, PATIENCE_S)

    def set_cable(self, one: str, other: str, *, up: bool) -> None:
        """Take the first cable between two nodes down, or bring it up."""
        for ends in ((one, other), (other, one)):
            self.served.emulated.set_link(self.served.emulated.fabric.links_between(*ends)[0], up=up)


@asynccontextmanager
async def served_clos() -> AsyncIterator[ServedFabric]:
    """Serve CLOS, with switches that have no pipeline yet."""
    emulated = EmulatedFabric(CLOS.build(), compile_program(PROGRAM.read_text()), HostOptions(window_packets=40))
    exclusive = asyncio.Lock()
    pipeline = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())
    service = P4RuntimeService(emulated.switches.values(), pipeline, exclusive, emulated.packet_out)
    async with serve(service, set_port=emulated.set_port) as port:
        yield ServedFabric(emulated, f"127.0.0.1:{port}", VirtualClock(emulated, exclusive, service.deliver), exclusive)


def configuration(switches: Sequence[SwitchAddress], **options: Any) -> ControllerConfig:
    """The configuration of a controller of CLOS with a page."""
    document = {"listen": "127.0.0.1:0", "topology": CLOS, "switches": switches, "web": {"listen": "127.0.0.1:0"}}
    return ControllerConfig.model_validate(document | options)


@asynccontextmanager
async def live(log: Path | None = None, **options: Any) -> AsyncIterator[Live]:
    """Run a controller of CLOS and a client of it."""
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(served_clos())
        process = ControllerProcess(configuration(served.addresses(), **options), log=log)
        controller = await stack.enter_async_context(process)
        yield Live(served, controller, await stack.enter_async_context(Client([controller.address])))


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run Chromium; skips the test, saying so, where there is none."""
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    async with async_playwright() as playwright:
        # Root, as which containers run tests, has no sandbox in Chromium.
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def opened(browser: Browser, url: str, view: str = "", **options: Any) -> AsyncIterator[Page]:
    """Open a view of a page in a context of its own, the first one by default.

    Fails where a script does, or where the policy blocks anything.
    """
    context = await browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))

    def note(line: ConsoleMessage) -> None:
        if "Security Policy" in line.text:
            problems.append(line.text)

    page.on("console", note)
    await page.goto(f"{url}/#{view}" if view else url)
    try:
        yield page
        assert problems == []
    finally:
        await context.close()


async def wide(page: Page) -> int:
    """By how much the page is wider than the window."""
    return int(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
