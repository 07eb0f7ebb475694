"""Metrics: viewers get them in both formats, also on a standby, and their labels are bounded."""

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from controller.access.authenticator import Anybody, authenticator
from controller.access.identity import Role
from controller.metrics import CALLS, OTHER, BoundedLabels
from controller.web.metrics import OPEN_METRICS, TEXT, Format, Scrape, Scrapes, format_of, metrics_route
from controller.web.presence import Presence
from tests.controller.access.secured import Trial, secured
from tests.controller.web.serving import get, serving
from tests.patience import PATIENCE_S, until


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, PATIENCE_S))


def values(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_viewer_gets_them_as_text_and_openmetrics_and_others_do_not(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    viewer, job = trial.token("bob", Role.VIEWER), trial.token("gpt", Role.JOB, "vision")

    async def scrape() -> None:
        async with secured() as controller:
            presence = Presence(controller.core.context)
            route = metrics_route(presence, authenticator(tmp_path / "tokens.yaml", None))
            async with serving(presence, [route]) as url:
                bearing = {"Authorization": f"Bearer {viewer}"}
                text = await asyncio.to_thread(get, url, "/metrics", bearing)
                assert (text.status, text.content_type.partition(";")[0]) == (200, "text/plain")
                assert values(text.body)["trainyard_is_leader", frozenset()] == 1
                accepting = {"Accept": "application/openmetrics-text; version=1.0.0; charset=utf-8"}
                open_metrics = await asyncio.to_thread(get, url, "/metrics", bearing | accepting)
                assert open_metrics.content_type.startswith("application/openmetrics-text")
                assert "trainyard_plans" in {family.name for family in openmetrics_families(open_metrics.body)}
                assert (await asyncio.to_thread(get, url, "/metrics")).status == 401
                refused = await asyncio.to_thread(get, url, "/metrics", {"Authorization": f"Bearer {job}"})
                assert refused.status == 403
                again = values((await asyncio.to_thread(get, url, "/metrics", bearing)).body)
                for tenant, status in (("", "UNAUTHENTICATED"), ("vision", "PERMISSION_DENIED"), ("", "OK")):
                    labels = {"protocol": "http", "tenant": tenant, "status": status}
                    assert again["trainyard_calls_total", frozenset(labels.items())] >= 1

    run(scrape())


def test_a_standby_says_that_it_does_not_lead() -> None:
    async def scrape() -> None:
        presence = Presence()
        async with serving(presence, [metrics_route(presence, Anybody())]) as url:
            answer = await asyncio.to_thread(get, url, "/metrics")
            assert answer.status == 200
            found = values(answer.body)
            assert found["trainyard_is_leader", frozenset()] == 0
            assert "trainyard_jobs" not in {name for name, _ in found}
            assert any(name == "trainyard_build_info" for name, _ in found)
            unread = {"Accept": "application/openmetrics-text; version=newest"}
            answer = await asyncio.to_thread(get, url, "/metrics", unread)
            assert (answer.status, answer.content_type.partition(";")[0]) == (200, "text/plain")

    run(scrape())


def test_labels_are_bounded_and_hostile_names_stay_in_their_line() -> None:
    labels = BoundedLabels(2)
    assert labels.of("a") == "a"
    hostile = labels.of('b"} 7\ntrainyard_is_leader 9\n\ud800' + "x" * 1_000)
    assert len(hostile) <= 100
    assert [labels.of(name) for name in ("c", "a", "d")] == [OTHER, "a", OTHER]
    CALLS.labels("grpc", hostile, "OK").inc()

    async def scrape() -> None:
        presence = Presence()
        async with serving(presence, [metrics_route(presence, Anybody())]) as url:
            found = values((await asyncio.to_thread(get, url, "/metrics")).body)
        assert found["trainyard_is_leader", frozenset()] == 0
        assert found["trainyard_calls_total", frozenset({("protocol", "grpc"), ("tenant", hostile), ("status", "OK")})]

    run(scrape())


def test_whoever_fails_often_to_sign_in_is_logged_and_refused_for_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("controller.api.rate_limiter.BURST_UNITS", 25)
    monkeypatch.setattr("controller.api.rate_limiter.UNITS_PER_S", 1e-3)
    monkeypatch.setattr("controller.api.rate_limiter.PENALTY_S", 0.01)
    Trial(tmp_path).token("bob", Role.VIEWER)

    async def guess() -> None:
        presence = Presence()
        who = authenticator(tmp_path / "tokens.yaml", None)
        async with serving(presence, [metrics_route(presence, who)]) as url:
            guessed = {"Authorization": "Bearer guessed"}
            statuses = [(await asyncio.to_thread(get, url, "/metrics", guessed)).status for _ in range(4)]
            assert statuses == [401, 401, 429, 429]
            assert (await asyncio.to_thread(get, url, "/healthz")).status == 200

    run(guess())
    assert [line for line in caplog.messages if "refused" in line] == [
        "/metrics from 127.0.0.1 refused: the token is not known"
    ]


class _Encoding:
    """A format whose encoding waits, and notes when it is done."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.begun_s: list[float] = []
        self.format = Format("text/plain", self.encode)

    def encode(self, scrape: Scrape) -> bytes:
        self.begun_s.append(monotonic())
        assert self.goes_on.wait(PATIENCE_S)
        return f"{len(self.begun_s)} {sum(1 for _ in scrape.collect())}".encode()


def test_who_asks_often_gets_metrics_made_together_and_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.web.metrics._SHARE", 0.25)

    async def scrape() -> None:
        encoding, scrapes = _Encoding(), Scrapes(Presence())
        first = asyncio.create_task(scrapes.octets(encoding.format))
        await until(lambda: bool(encoding.begun_s))
        others = [asyncio.create_task(scrapes.octets(encoding.format)) for _ in range(50)]
        await asyncio.sleep(0.05)  # all of them wait by now, and making these metrics takes so long
        others[0].cancel()
        encoding.goes_on.set()
        assert (await first).startswith(b"1 ")
        # What has been begun before they asked is not for them.
        assert {(await each).partition(b" ")[0] for each in others[1:]} == {b"2"}
        assert encoding.begun_s[1] - encoding.begun_s[0] >= 4 * 0.05
        assert (await scrapes.octets(encoding.format)).startswith(b"3 ")

    run(scrape())


def test_metrics_while_a_controller_goes_over_are_those_of_afterwards() -> None:
    async def scrape() -> None:
        async with secured() as controller:
            presence = Presence(controller.core.context)
            async with serving(presence, [metrics_route(presence, Anybody())]) as url:
                presence.go_over()
                presence.context = None
                asked = asyncio.create_task(asyncio.to_thread(get, url, "/metrics"))
                await asyncio.sleep(0.05)
                with presence.of(controller.core.context):
                    assert values((await asked).body)["trainyard_is_leader", frozenset()] == 1

    run(scrape())


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", TEXT),
        ("application/openmetrics-text;version=0.0.1", TEXT),
        ("application/openmetrics-text;version=newest", TEXT),
        ("application/openmetrics-text;version=1.0.0;escaping=underscores;q=0.6,text/plain;q=0.3", OPEN_METRICS),
        ("application/openmetrics-text;version=7.3.1", OPEN_METRICS),
    ],
)
def test_there_are_two_formats_however_many_versions_are_asked_for(accepted: str, expected: Format) -> None:
    assert format_of(accepted) is expected
