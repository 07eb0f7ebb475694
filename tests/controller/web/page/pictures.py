"""Makes the pictures of docs/page.md: ``python -m tests.controller.web.page.pictures FOLDER``.

They are of a real controller over emulated switches, whose jobs the script registers. One cable is down.
"""

import asyncio
import sys
from pathlib import Path

from playwright.async_api import Browser, Page, expect

from tests.controller.web.page.live import Live, chromium, live, opened

_JOBS = (
    ("llama-70b", ("h0", "h4", "h8", "h12"), 32, 15 * 10**8),
    ("gpt-3", ("h1", "h5", "h9", "h13"), 32, 40 * 10**8),
    ("mixtral", ("h2", "h6"), 16, 25 * 10**8),
    ("bert-large", ("h3", "h7"), 8, 30 * 10**8),
    ("resnet-50", ("h4", "h10"), 8, 10 * 10**8),
    ("whisper", ("h5", "h11"), 8, 45 * 10**8),
    ("vit-huge", ("h0", "h14"), 8, 60 * 10**8),
)
_LAST = ("t5-xxl", ("h2", "h8", "h15"), 24, 20 * 10**8)
_SHOWN_MS = 700


async def _train(running: Live) -> None:
    """Begin iterations of all jobs, until cancelled."""
    iteration = 0
    while True:
        iteration += 1
        for number, (name, *_) in enumerate(_JOBS):
            running.client.start_flow_groups(name, ["ring"], iteration)
            await asyncio.sleep(0.02 * number)
        await asyncio.sleep(1.1)


async def _save(page: Page, folder: Path, name: str, view: str) -> None:
    await page.evaluate("view => { location.hash = '#' + view }", view)
    await page.wait_for_timeout(_SHOWN_MS)
    await page.screenshot(path=folder / f"page-{name}.png")


async def make(folder: Path) -> None:
    """Make all pictures."""
    async with chromium() as browser, live() as running:
        for name, hosts, gpus, size_bytes in _JOBS:
            await running.register(name, hosts, gpus=gpus, size_bytes=size_bytes)
        training = asyncio.create_task(_train(running))
        size = {"width": 1280, "height": 800}
        async with opened(browser, running.controller.web, viewport=size, color_scheme="light") as page:
            await expect(page.locator("#map .node").first).to_be_visible()
            await asyncio.sleep(4.0)
            running.set_cable("t1", "a0", up=False)
            await expect(page.locator("#map path[data-used=none]")).to_have_count(1)
            name, hosts, gpus, size_bytes = _LAST
            await running.register(name, hosts, gpus=gpus, size_bytes=size_bytes)
            await asyncio.sleep(4.0)
            await _save(page, folder, "fabric", "fabric")
            await _save(page, folder, "jobs", "jobs")
            await page.locator("#jobs td.subject button").nth(3).click()
            await _save(page, folder, "explanation", "jobs")
            await page.keyboard.press("Escape")
            await _save(page, folder, "plans", "plans")
            await _small(browser, running, folder)
        training.cancel()


async def _small(browser: Browser, running: Live, folder: Path) -> None:
    size = {"width": 390, "height": 844}
    async with opened(browser, running.controller.web, "jobs", viewport=size, color_scheme="dark") as page:
        await expect(page.locator("#jobs td.subject").first).to_be_visible()
        await _save(page, folder, "small", "jobs")


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1])))
