"""What tests of the page look at in a browser: every view, hostile names, and what axe-core finds."""

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, expect

from tests.controller.web.page.live import PATIENCE_MS, wide

expect.set_options(timeout=PATIENCE_MS)

VIEWS = ("fabric", "jobs", "links", "switches", "plans", "events")
LONG = "long-" + "x" * 251
HOSTILE = ("<img src=x onerror=alert(1)>", "עבודה שלום", LONG, "'; DROP TABLE jobs; --", "{{7*7}}", "__proto__")


async def explained(page: Page, name: str) -> str:
    """Click on a job in the table of jobs, and return what the page says of it."""
    await page.locator("#jobs td.subject").get_by_role("button", name=name, exact=True).click()
    lines = page.locator("#explanation-body .lines")
    await expect(lines).to_be_visible()
    text = await lines.inner_text()
    await page.keyboard.press("Escape")
    await expect(page.locator("#explanation")).to_be_hidden()
    return text


async def check(page: Page, where: str) -> None:
    found = await Axe().run(page)
    assert found.violations_count == 0, f"{where}: {found.generate_report()}"
    assert await wide(page) <= 0, f"{where}: wider than the window"
