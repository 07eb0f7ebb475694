"""The page in a real Chromium, of a real controller over emulated switches with jobs."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from controller.access.identity import Role
from controller.config import LeadershipConfig
from experiments.scenarios.controller_process import ControllerProcess
from hostlib.client import Client
from tests.controller.access.secured import Trial
from tests.controller.web.page.live import chromium, configuration, live, opened, served_clos
from tests.controller.web.page.looking import HOSTILE, check, explained
from tests.patience import PATIENCE_S
from tests.ports import free_port

pytestmark = pytest.mark.slow


def test_an_operator_sees_a_cable_die_a_job_come_and_reads_why(tmp_path: Path) -> None:
    async def look() -> None:
        async with asyncio.timeout(PATIENCE_S), chromium() as browser, live(tmp_path / "log") as running:
            await running.register("gpt", ("h0", "h4", "h8"), gpus=3)
            async with opened(browser, running.controller.web) as page:
                await expect(page.locator("#about")).to_contain_text("policy crux")
                await expect(page.locator("#map [data-node=t0]")).to_be_visible()
                await expect(page.locator("#map .node")).to_have_count(16 + 4 + 2)
                await expect(page.locator("#map path[data-used=none]")).to_have_count(0)

                running.set_cable("t0", "a0", up=False)
                await expect(page.locator("#map path[data-used=none]")).to_have_count(1)
                await expect(page.locator("#summary")).to_contain_text("✕ 1cables failed")
                await page.keyboard.press("3")
                row = page.locator("#links tr", has_text="down")
                await expect(row).to_contain_text("a switch says that its port is down")
                running.set_cable("t0", "a0", up=True)
                await expect(page.locator("#links td", has_text="✕ down")).to_have_count(0)

                await page.keyboard.press("5")
                await running.register("bert", ("h1", "h5"), gpus=16)
                await _choose_plan(page, "1 new job")
                await expect(page.locator("#plan").get_by_role("button", name="bert")).to_be_visible()
                await _choose_plan(page, "0 → 1")

                await page.keyboard.press("2")
                await expect(page.locator("#jobs tbody tr:visible")).to_have_count(2)
                shown = await explained(page, "gpt")
                asked = await _command(running.controller.address, "explain", "gpt")
                assert _words(shown) == _words(asked)

                await page.locator("#jobs td.subject").get_by_role("button", name="bert").click()
                await page.locator("#explanation .flows button").first.click()
                await expect(page.locator("#explanation-title")).to_have_text("bert/ring/0")
                shown = await page.locator("#explanation-body .lines").inner_text()
                assert _words(shown) == _words(await _command(running.controller.address, "explain", "bert/ring/0"))
                await page.get_by_role("button", name=re.compile("cables on the map")).click()
                await expect(page.locator("#map path.lit")).not_to_have_count(0)
                await page.get_by_role("button", name=re.compile("Show all cables")).click()
                await expect(page.locator("#map path.lit")).to_have_count(0)

                for iteration in range(4):
                    running.client.start_flow_groups("gpt", ["ring"], iteration)
                    await asyncio.sleep(0.3)
                await page.keyboard.press("2")
                cell = page.locator("#jobs tr", has_text="gpt").locator("td[data-label=Iteration]").first
                await expect(cell).to_have_text(re.compile(r"0\.\d+\ss"))

                await page.keyboard.press("6")
                for kind in ("links left", "links back", "job admitted"):
                    await expect(page.locator("#events td[data-label=Kind]", has_text=kind).first).to_be_visible()

                await _command(running.controller.address, "pause", "--reason", "maintenance <b>")
                await expect(page.locator("#banner")).to_contain_text("Planning is paused since")
                await expect(page.locator("#banner")).to_contain_text("maintenance <b>")
                await _command(running.controller.address, "resume")
                await expect(page.locator("#banner")).to_be_empty()

                await page.keyboard.press("2")
                running.client.deregister("gpt")
                await expect(page.locator("#jobs tbody tr:visible")).to_have_count(1)

    asyncio.run(look())


def test_drains_and_pins_are_calm_and_say_by_whom(tmp_path: Path) -> None:
    async def look() -> None:
        async with asyncio.timeout(PATIENCE_S), chromium() as browser, live(tmp_path / "log") as running:
            await running.register("gpt", ("h0", "h4"))
            address = running.controller.address
            await _command(address, "drain", "switch", "a1")
            await _command(address, "pin", "gpt", "--level", "3", "--for", "2h")
            await _command(address, "pin", "gpt/ring/0", "--path", "h0.0>t0.0>a0.0>t1.0>h4", "--for", "2h")
            async with opened(browser, running.controller.web) as page:
                await expect(page.locator("#map path[data-used=drained]")).to_have_count(4)
                await expect(page.locator("#map [data-node=a1]")).to_have_attribute("aria-label", re.compile("drained"))
                summary = page.locator("#summary")
                for words in ("0cables failed", "1drained, 4\N{NO-BREAK SPACE}cables", "2pinned"):
                    await expect(summary).to_contain_text(words)
                await expect(page.locator(".bad:visible, tr.attention")).to_have_count(0)
                await page.keyboard.press("4")
                pins = page.locator("[aria-label='Pinned levels and paths'] tbody tr")
                await expect(pins).to_have_count(2)
                await expect(pins.first).to_contain_text("level 3")
                await expect(pins.last).to_contain_text("h0.0>t0.0>a0.0>t1.0>h4")
                await expect(pins.locator("td[data-label=Holds]", has_text="✓ yes")).to_have_count(2)
                await page.keyboard.press("2")
                job = page.locator("#jobs tbody tr")
                await expect(job.locator("td[data-label=Level]")).to_have_text(re.compile(r"^3\s*pinned$"))
                await expect(job.locator("td[data-label=Flows]")).to_have_text(re.compile(r"^2\s*1 pinned$"))
                assert "pinned by" in await explained(page, "gpt")
                flow = page.locator("#explanation .flows li").first
                await expect(flow).to_contain_text(re.compile("pinned.* until "))
                for view in ("fabric", "jobs", "switches"):
                    await page.evaluate("view => { location.hash = '#' + view }", view)
                    await expect(page.locator(f"#{view}")).to_be_visible()
                    await check(page, view)
                await _command(address, "unpin", "gpt")
                await page.keyboard.press("2")
                await expect(job.locator("td[data-label=Level]")).not_to_contain_text("pinned")

    asyncio.run(look())


def test_names_on_the_map_are_whole_where_there_is_room_and_keep_their_end(tmp_path: Path) -> None:
    fitted = """async ([name, room, mayWrap]) => {
        const labels = await import("/page/files/labels.js");
        return labels.fitted(name, room, mayWrap, (text) => text.length);
    }"""

    async def look() -> None:
        async with (
            asyncio.timeout(PATIENCE_S),
            chromium() as browser,
            live(tmp_path / "log") as running,
            opened(browser, running.controller.web) as page,
        ):
            for name, room, may_wrap, lines in (
                ("ber1-spine-1", 12, True, ["ber1-spine-1"]),
                ("ber1-spine-1", 8, True, ["ber1-", "spine-1"]),
                ("ber1-spine-1", 9, False, ["be…pine-1"]),
                ("ber1-spine-1", 5, False, ["…ne-1"]),
                ("spine", 1, False, ["…"]),
            ):
                assert await page.evaluate(fitted, [name, room, may_wrap]) == lines
            label = page.locator("#map [data-node=t0] text:not(.sign)")
            await expect(label).to_have_text("t0")
            await expect(page.locator("#map [data-node=t0] title")).to_have_text(re.compile("^t0: caught up"))

    asyncio.run(look())


def test_what_the_page_says_of_loads_signs_and_pauses_is_so(tmp_path: Path) -> None:
    load = """async ([planned, measured]) => {
        const links = await import("/page/files/links.js");
        const { share, isMeasured } = links.loadOf({ planned, measured });
        return [share, isMeasured];
    }"""
    overlap = """() => {
        const node = document.querySelector("#map [data-node=t0]");
        node.dataset.good = "false";
        const sign = node.querySelector(".sign").getBoundingClientRect();
        return sign.width === 0 || sign.left < node.querySelector("rect").getBoundingClientRect().right;
    }"""

    async def look() -> None:
        async with (
            asyncio.timeout(PATIENCE_S),
            chromium() as browser,
            live(tmp_path / "log") as running,
            opened(browser, running.controller.web) as page,
        ):
            for planned, measured, said in (
                ([0.2, 0.0], [None, 0.0], [0.2, False]),
                ([0.2, 0.0], [0.3, None], [0.3, True]),
                ([0.2, 0.2], [0.2, None], [0.2, True]),
                ([0.2, 0.4], [0.3, None], [0.4, False]),
            ):
                assert await page.evaluate(load, [planned, measured]) == said
            await expect(page.locator("#map [data-node=t0]")).to_be_visible()
            assert not await page.evaluate(overlap)
            await _command(running.controller.address, "pause", "--reason", "is it us?")
            await expect(page.locator("#banner")).to_have_text(re.compile("is it us\\?$"))

    asyncio.run(look())


async def _choose_plan(page: Page, text: str) -> None:
    """Choose the Plan that says something: a job and its flows may come with one Plan or with two."""
    chips = page.locator("#plan-choice button")
    while True:
        for number in range(await chips.count()):
            await chips.nth(number).click()
            if text in (await page.locator("#plan").inner_text()).replace("\N{NO-BREAK SPACE}", " "):
                return
        await asyncio.sleep(0.2)


async def _command(address: str, *arguments: str) -> str:
    """What a command of ``trainyard`` prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trainyard", *arguments, "--controller", address), stdout=asyncio.subprocess.PIPE
    )
    octets, _ = await process.communicate()
    assert process.returncode == 0
    return octets.decode()


def _words(text: str) -> list[str]:
    return text.split()


def test_empty_views_say_why(tmp_path: Path) -> None:
    async def look() -> None:
        async with (
            asyncio.timeout(PATIENCE_S),
            chromium() as browser,
            live(tmp_path / "log") as running,
            opened(browser, running.controller.web, "jobs") as page,
        ):
            await expect(page.locator("#jobs .empty")).to_contain_text("No job is registered")
            await page.keyboard.press("4")
            await expect(page.locator("#switches")).to_contain_text("Nothing is drained")
            await page.keyboard.press("5")
            await expect(page.locator("#plan")).to_be_visible()

    asyncio.run(look())


def test_a_viewer_signs_in_and_the_token_stays_nowhere(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    viewer, job = trial.token("bob", Role.VIEWER), trial.token("gpt", Role.JOB, "vision")
    tls = {**trial.tls}

    async def look() -> None:
        async with (
            asyncio.timeout(PATIENCE_S),
            chromium() as browser,
            served_clos() as served,
            ControllerProcess(
                configuration(served.addresses(), tls=tls, tokens=tmp_path / "tokens.yaml"), log=tmp_path / "log"
            ) as controller,
        ):
            options = {"ignore_https_errors": True}
            async with opened(browser, controller.web, **options) as page:
                await expect(page.locator("#sign-in")).to_be_visible()
                await expect(page.locator("#token")).to_be_focused()
                await check(page, "sign-in")
                for wrong, why in (("nonsense", "the token is not known"), (job, "is for viewer, not for job")):
                    await page.locator("#token").fill(wrong)
                    await page.keyboard.press("Enter")
                    await expect(page.locator("#sign-in-problem")).to_contain_text(why)
                await page.locator("#token").fill(viewer)
                await page.get_by_role("button", name="Sign in").click()
                await expect(page.locator("#map .node").first).to_be_visible()
                await expect(page.locator("#sign-out")).to_have_text("Sign out bob")
                [cookie] = await page.context.cookies()
                assert cookie["name"].startswith("__Host-")
                assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
                stored = "document.cookie + JSON.stringify([localStorage, sessionStorage])"
                kept = await page.evaluate(f"document.documentElement.outerHTML + {stored}")
                assert viewer not in kept + cookie["value"]
                await page.reload()
                await expect(page.locator("#map .node").first).to_be_visible()
                await page.get_by_role("button", name="Sign out").click()
                await expect(page.locator("#sign-in")).to_be_visible()
                assert await page.context.cookies() == []

    asyncio.run(look())


def test_the_page_says_that_the_controller_is_gone_and_goes_on_with_the_next_one(tmp_path: Path) -> None:
    async def look() -> None:
        async with asyncio.timeout(PATIENCE_S), chromium() as browser, served_clos() as served:
            place = {"listen": f"127.0.0.1:{free_port()}"}
            first = ControllerProcess(configuration(served.addresses(), web=place), log=tmp_path / "log")
            async with first, Client([first.address]) as client:
                async with opened(browser, first.web) as page:
                    await expect(page.locator("#map .node").first).to_be_visible()
                    await first.kill()
                    await expect(page.locator("#banner")).to_contain_text("No connection to the controller since")
                    again = configuration(served.addresses(), web=place, policy="ecmp")
                    async with ControllerProcess(again, log=tmp_path / "log-2"):
                        await expect(page.locator("#banner")).to_be_empty()
                        await expect(page.locator("#about")).to_contain_text("policy ecmp")
                del client

    asyncio.run(look())


def test_a_standby_says_who_leads_and_shows_the_fabric_once_it_leads(tmp_path: Path) -> None:
    def named(name: str) -> dict[str, object]:
        return {"database": str(tmp_path / "db"), "leadership": LeadershipConfig(name=name, lease_s=10.0)}

    async def look() -> None:
        async with asyncio.timeout(PATIENCE_S), chromium() as browser, served_clos() as served:
            leader = ControllerProcess(configuration(served.addresses(), **named("node-a")), log=tmp_path / "a")
            async with leader:
                async with opened(browser, leader.web) as page:
                    await expect(page.locator("#about")).to_contain_text("node-a, term")
                standby = ControllerProcess(configuration(served.addresses(), **named("node-b")), log=tmp_path / "b")
                async with standby, opened(browser, standby.web) as page:
                    await expect(page.locator("#standby")).to_contain_text("node-a does")
                    await expect(page.locator("#views")).to_be_hidden()
                    await check(page, "standby")
                    await leader.kill()
                    await expect(page.locator("#about")).to_contain_text("node-b, term")
                    await expect(page.locator("#map .node").first).to_be_visible()
                    await expect(page.locator("#standby")).to_be_hidden()

    asyncio.run(look())


def test_nothing_in_a_name_is_markup(tmp_path: Path) -> None:
    async def look() -> None:
        async with asyncio.timeout(PATIENCE_S), chromium() as browser, live(tmp_path / "log") as running:
            for number, name in enumerate(HOSTILE):
                await running.register(name, (f"h{number}", f"h{number + 6}"))
            async with opened(browser, running.controller.web, "jobs") as page:
                dialogs: list[str] = []
                page.on("dialog", lambda dialog: dialogs.append(dialog.message))
                await expect(page.locator("#jobs tbody tr:visible")).to_have_count(len(HOSTILE))
                for name in HOSTILE:
                    assert name.split()[0][:30] in await explained(page, name)
                assert await page.locator("main img, main script, dialog img").count() == 0
                assert dialogs == []

    asyncio.run(look())
