"""The page is for everybody: axe-core finds nothing, no view is too wide, and a keyboard is enough."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.controller.web.page.live import chromium, live, opened, wide
from tests.controller.web.page.looking import HOSTILE, LONG, VIEWS, check
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow


def test_every_view_is_accessible_in_both_themes_and_at_all_sizes(tmp_path: Path) -> None:
    async def look() -> None:
        async with asyncio.timeout(2 * PATIENCE_S), chromium() as browser, live(tmp_path / "log") as running:
            for number, name in enumerate(HOSTILE):
                await running.register(name, (f"h{number}", f"h{number + 6}"))
            running.set_cable("t1", "a1", up=False)
            for size in ((390, 844), (1400, 900)):
                for scheme in ("light", "dark"):
                    await _check_views(browser, running.controller.web, size, scheme)

    asyncio.run(look())


def test_no_view_is_wider_than_the_window(tmp_path: Path) -> None:
    async def look() -> None:
        async with asyncio.timeout(PATIENCE_S), chromium() as browser, live(tmp_path / "log") as running:
            await running.register(LONG, ("h0", "h4"))
            for width, height in ((320, 600), (390, 844), (768, 1024), (1000, 800), (1920, 1080), (3840, 2160)):
                viewport = {"width": width, "height": height}
                async with opened(browser, running.controller.web, viewport=viewport) as page:
                    await expect(page.locator("#map .node").first).to_be_visible()
                    for view in VIEWS:
                        await page.evaluate("view => { location.hash = '#' + view }", view)
                        await expect(page.locator(f"#{view}")).to_be_visible()
                        assert await wide(page) <= 0, f"{view} at {width} pixels"

    asyncio.run(look())


async def _check_views(browser: Browser, url: str, size: tuple[int, int], scheme: str) -> None:
    viewport = {"width": size[0], "height": size[1]}
    async with opened(browser, url, viewport=viewport, color_scheme=scheme, reduced_motion="reduce") as page:
        await expect(page.locator("#map .node").first).to_be_visible()
        for view in VIEWS:
            await page.evaluate("view => { location.hash = '#' + view }", view)
            await expect(page.locator(f"#{view}")).to_be_visible()
            await check(page, f"{view} {size} {scheme}")
        await page.evaluate("location.hash = '#jobs'")
        for name in HOSTILE:
            await expect(page.locator("#jobs td.subject", has_text=name)).to_be_visible()
        await page.locator("#jobs td.subject button").first.click()
        await expect(page.locator("#explanation .lines")).to_be_visible()
        await check(page, f"explanation {size} {scheme}")
        await page.keyboard.press("Escape")
        await page.locator("#help").click()
        await check(page, f"keys {size} {scheme}")


def test_everything_can_be_done_by_keyboard(tmp_path: Path) -> None:
    async def look() -> None:
        async with asyncio.timeout(PATIENCE_S), chromium() as browser, live(tmp_path / "log") as running:
            await running.register("gpt", ("h0", "h4"))
            await running.register("bert", ("h1", "h5"))
            async with opened(browser, running.controller.web) as page:
                await expect(page.locator("#map .node").first).to_be_visible()
                await page.keyboard.press("Tab")
                await expect(page.locator(".skip")).to_be_focused()
                # The whole map is one stop; arrows move inside it.
                for _ in range(40):
                    if await page.evaluate("Boolean(document.activeElement.closest('#map'))"):
                        break
                    await page.keyboard.press("Tab")
                await expect(page.locator("[data-node=h0]")).to_be_focused()
                await page.keyboard.press("ArrowRight")
                await expect(page.locator("[data-node=h1]")).to_be_focused()
                await page.keyboard.press("ArrowUp")
                await expect(page.locator("[data-node=t0]")).to_be_focused()
                outline = await page.locator("[data-node=t0] rect").evaluate(
                    "node => getComputedStyle(node).strokeWidth"
                )
                assert outline == "4px"
                await page.keyboard.press("Enter")
                await expect(page.locator("#details h3")).to_have_text("t0")
                await expect(page.locator("#details")).to_contain_text("caught up")

                await page.keyboard.press("2")
                await expect(page.locator("#jobs")).to_be_visible()
                await page.keyboard.press("/")
                await page.keyboard.type("ber")
                await expect(page.locator("#jobs tbody tr:visible")).to_have_count(1)
                await expect(page.locator("#jobs .tools")).to_contain_text("1 of 2 jobs")
                await page.keyboard.type("zzz")
                await expect(page.locator("#jobs .empty")).to_contain_text("Nothing matches")
                await page.keyboard.press("ControlOrMeta+a")
                await page.keyboard.press("Delete")
                await page.keyboard.press("Escape")
                await page.locator("#jobs td.subject button").first.focus()
                await page.keyboard.press("Enter")
                await expect(page.locator("#explanation")).to_be_visible()
                await page.keyboard.press("Escape")
                await expect(page.locator("#explanation")).to_be_hidden()

                heading = page.locator("#jobs th", has_text="GPUs")
                await heading.get_by_role("button").focus()
                await page.keyboard.press("Enter")
                await expect(heading).to_have_attribute("aria-sort", "ascending")

                await page.locator("#main").focus()
                grounds = []
                for theme in ("light", "dark"):
                    await page.keyboard.press("t")
                    await expect(page.locator("html")).to_have_attribute("data-theme", theme)
                    grounds.append(await page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
                assert grounds[0] != grounds[1]
                await page.reload()
                await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
                await page.keyboard.press("?")
                await expect(page.locator("#keys")).to_be_visible()

    asyncio.run(look())
