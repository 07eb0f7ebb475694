"""The page over HTTP: its files, the feed, and browsers that do not read."""

import asyncio
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from controller.telemetry.int_reports import NOT_KNOWN, HopSamples
from controller.telemetry.telemetry import STALE_AFTER_S
from controller.web.page import event_stream, feed
from tests.controller.web.page.sites import answer_to, connect_to, event_record, first_state, served_page
from tests.patience import until


def test_without_identities_everybody_on_the_machine_sees_the_page() -> None:
    async def look() -> None:
        async with served_page() as site:
            status, text, headers = await answer_to(site.url, "/")
            assert (status, "<title>Trainyard</title>" in text) == (200, True)
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert (await answer_to(site.url, "/page/session"))[:2] == (200, '{"name":"","session":false}')
            _, state = await first_state(site.url)
            assert state["full"]
            hosts, tors, aggs = state["sections"]["map"]["fabric"]["tiers"]
            assert [len(hosts), tors, aggs] == [
                4,
                [["t0", "switch"], ["t1", "switch"]],
                [["a0", "switch"], ["a1", "switch"]],
            ]
            assert state["sections"]["controller"]["now"]["policy"] == "crux"

    asyncio.run(look())


def test_files_are_fetched_once_and_nothing_else_is_there() -> None:
    async def look() -> None:
        async with served_page() as site:
            status, _, headers = await answer_to(site.url, "/page/files/page.js")
            assert (status, headers["content-type"]) == (200, "text/javascript; charset=utf-8")
            again = await answer_to(site.url, "/page/files/page.js", headers={"If-None-Match": headers["etag"]})
            assert again[:2] == (304, "")
            for path in ("/page/files/no.js", "/page/files/..%2froutes.py", "/page/files/routes.py", "/page/"):
                assert (await answer_to(site.url, path))[0] == 404

    asyncio.run(look())


def test_who_comes_back_gets_only_what_it_has_missed() -> None:
    async def look() -> None:
        async with served_page() as site:
            number, state = await first_state(site.url)
            assert state["full"]
            follower = asyncio.create_task(first_state(site.url))  # keeps the state up to date
            await follower
            record = event_record("switch t0: away: <script>alert(1)</script>\u202e")
            site.events.handle(record)
            again, missed = await first_state(site.url, {"Last-Event-ID": number})
            assert not missed["full"]
            assert "<script>" in next(iter(missed["sections"]["events"].values()))["message"]
            assert "\u202e" not in next(iter(missed["sections"]["events"].values()))["message"]
            assert int(again.partition("-")[2]) > int(number.partition("-")[2])
            for unknown in ("", "0-1", f"{number}9999", "x" * 5000):
                assert (await first_state(site.url, {"Last-Event-ID": unknown}))[1]["full"]

    asyncio.run(look())


def test_a_standby_says_who_leads_and_goes_on_when_it_leads() -> None:
    async def look() -> None:
        async with served_page() as site:
            context, site.presence.context = site.presence.context, None
            site.presence.who_leads = lambda: "node-b does"
            _, state = await first_state(site.url)
            assert state["sections"] == {"controller": {"now": {"standby": "node-b does"}}}
            assert (await answer_to(site.url, "/page/explain?name=gpt"))[0] == 503
            site.presence.context = context
            _, state = await first_state(site.url)
            while state["sections"]["controller"]["now"]["standby"] is not None:
                _, state = await first_state(site.url)
            assert "map" in state["sections"]

    asyncio.run(look())


def test_a_controller_that_reloads_is_no_standby() -> None:
    async def look() -> None:
        async with served_page() as site:
            context = site.presence.context
            number, _ = await first_state(site.url)
            site.presence.go_over()
            site.presence.context = None
            site.events.handle(event_record("reloading"))
            following = asyncio.create_task(first_state(site.url, {"Last-Event-ID": number}))
            new = asyncio.create_task(first_state(site.url))
            asking = asyncio.create_task(answer_to(site.url, "/page/explain?name=gpt"))
            assert (await answer_to(site.url, "/readyz"))[0] == 200
            await asyncio.sleep(2 * feed.PERIOD_S)
            site.presence.context = context
            site.presence.stay()
            _, missed = await following
            assert "controller" not in missed["sections"]
            assert "events" in missed["sections"]
            assert (await new)[1]["sections"]["controller"]["now"]["standby"] is None
            assert (await asking)[0] == 404

    asyncio.run(look())


def test_what_cannot_be_explained_is_named() -> None:
    async def look() -> None:
        async with served_page() as site:
            unknown = "no job 'no' is registered, and nothing has been planned yet\n"
            assert (await answer_to(site.url, "/page/explain?name=no/ring/0"))[:2] == (404, unknown)
            site.controller.core.planner.mark_changed()
            await site.controller.core.planner.settle()
            status, text, headers = await answer_to(site.url, f"/page/explain?name={'x' * 9000}%3Cb%3E")
            assert (status, headers["content-type"].split(";")[0]) == (404, "text/plain")
            assert len(text) < 1000

    asyncio.run(look())


@pytest.mark.slow
def test_a_browser_that_never_reads_is_cut_off_and_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "TAKE_LIMIT_S", 0.3)

    async def look() -> None:
        async with served_page() as site:
            at = urlsplit(site.url)
            _, writer = await asyncio.open_connection(at.hostname, at.port, limit=1)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(b"GET /page/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await until(lambda: site.feed.followers == 1)
            # What the kernel and the server hold for it fills up, while others go on.
            while site.feed.followers:
                for _ in range(200):
                    site.events.handle(event_record("x" * 900))
                assert (await first_state(site.url))[1]["full"]
                await asyncio.sleep(0.05)
            writer.close()

    asyncio.run(look())


def test_the_number_of_browsers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MOST_OF_ONE", 2)

    async def look() -> None:
        async with served_page() as site:
            at = urlsplit(site.url)
            open_ones = []
            for _ in range(2):
                reader, writer = await asyncio.open_connection(at.hostname, at.port)
                writer.write(b"GET /page/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await reader.readuntil(b"event: state")
                open_ones.append(writer)
            status, text, headers = await answer_to(site.url, "/page/events")
            assert (status, headers["retry-after"]) == (503, "5")
            assert text.startswith("too many browsers")
            open_ones[0].close()
            await open_ones[0].wait_closed()
            while True:
                status = await asyncio.to_thread(_status_of_feed, site.url)
                if status == 200:
                    break
            open_ones[1].close()

    asyncio.run(look())


def _status_of_feed(url: str) -> int:
    connection = connect_to(url, None)
    try:
        connection.request("GET", "/page/events")
        return connection.getresponse().status
    finally:
        connection.close()


def test_nothing_is_made_while_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered = 0
    gather = feed.Feed._gather

    async def counted(self: feed.Feed, *arguments: Any) -> Any:
        nonlocal gathered
        gathered += 1
        return await gather(self, *arguments)

    monkeypatch.setattr(feed.Feed, "_gather", counted)

    async def look() -> None:
        async with served_page() as site:
            await asyncio.sleep(0.5)
            assert gathered == 0
            await first_state(site.url)
            await until(lambda: not site.feed.followers)
            await asyncio.sleep(0.5)
            seen = gathered
            await asyncio.sleep(0.5)
            assert gathered == seen > 0

    asyncio.run(look())


def test_measured_loads_come_in_rows_of_their_own_while_they_are_new() -> None:
    async def look() -> None:
        async with served_page() as site:
            core, unknown = site.controller.core, np.array([NOT_KNOWN])
            now_s, window_bytes = core.context.clock.now_s(), np.array([50_000_000])
            samples = HopSamples(
                links=np.array([3]),
                came_s=np.array([now_s]),
                level=unknown,
                latency_us=unknown,
                queue_packets=unknown,
                window_bytes=window_bytes,
            )
            assert "loads" not in (await first_state(site.url))[1]["sections"]
            core.telemetry.links.record(samples, "h0")
            load_bps = core.telemetry.links.load_bps(3, now_s)
            assert load_bps is not None
            share = round(load_bps / core.registry.fabric.links[3].rate_bps, 2)
            while "loads" not in (state := (await first_state(site.url))[1]["sections"]):
                pass
            assert state["loads"] == {"1": [None, share]}
            assert share > 0
            old = replace(samples, came_s=np.array([now_s - 2 * STALE_AFTER_S]), links=np.array([5]))
            core.telemetry.links.record(old, "h0")
            assert (await first_state(site.url))[1]["sections"]["loads"] == {"1": [None, share]}

    asyncio.run(look())
