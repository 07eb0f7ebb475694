"""Who may see the page: tokens, certificates, sessions, and those who guess."""

import asyncio
import json
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from controller.access import reloading_file
from controller.access.identity import Role
from controller.access.tls_files import ServerTls
from controller.web.page import feed
from tests.controller.access.secured import Trial
from tests.controller.web.page.sites import answer_to, connect_to, event_record, message_of, served_page, sign_in


def test_a_viewer_signs_in_and_out_by_token(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    token = trial.token("bob", Role.VIEWER)
    bare = ssl.create_default_context(cafile=trial.ca)

    async def look() -> None:
        tls = ServerTls.model_validate(trial.tls)
        async with served_page(tls, tls=trial.tls, tokens=tmp_path / "tokens.yaml") as site:
            for path in ("/page/events", "/page/explain?name=gpt"):
                assert (await answer_to(site.url, path, context=bare))[0] == 401
            assert "refusal" in (await answer_to(site.url, "/page/session", context=bare))[1]
            guessed = {"Authorization": "Bearer guessed"}
            assert (await answer_to(site.url, "/page/session", headers=guessed, context=bare))[0] == 401
            status, text, cookie = await sign_in(site.url, f" {token}\n", bare)
            assert (status, text) == (200, '{"name":"bob","session":true}')
            name, *attributes = cookie.split("; ")
            assert name.startswith("__Host-")
            assert token not in cookie
            assert {each.lower() for each in attributes} >= {"httponly", "secure", "samesite=strict", "path=/"}
            shown = {"Cookie": name}
            assert (await answer_to(site.url, "/page/session", headers=shown, context=bare))[1] == text
            assert (await answer_to(site.url, "/page/session", "DELETE", headers=shown, context=bare))[0] == 204
            assert "refusal" in (await answer_to(site.url, "/page/session", headers=shown, context=bare))[1]

    asyncio.run(look())


def test_a_client_certificate_needs_no_sign_in(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    viewer = ssl.create_default_context(cafile=trial.ca)
    viewer.load_cert_chain(tmp_path / "viewer.pem", tmp_path / "viewer.key")
    job = ssl.create_default_context(cafile=trial.ca)
    job.load_cert_chain(tmp_path / "job-vision.pem", tmp_path / "job-vision.key")

    async def look() -> None:
        async with served_page(ServerTls.model_validate(trial.tls), tls=trial.tls) as site:
            answer = await answer_to(site.url, "/page/session", context=viewer)
            assert answer[:2] == (200, '{"name":"grafana","session":false}')
            assert "is for viewer, not for job" in (await answer_to(site.url, "/page/session", context=job))[1]
            assert (await answer_to(site.url, "/page/events", context=job))[0] == 403

    asyncio.run(look())


def test_a_session_ends_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloading_file, "_CHECKED_EVERY_S", 0.0)
    monkeypatch.setattr(feed, "ALIVE_S", 2 * feed.PERIOD_S)
    trial = Trial(tmp_path)
    kept = trial.token("carol", Role.OPERATOR)
    tokens = tmp_path / "tokens.yaml"
    without = tokens.read_text()
    removed = trial.token("bob", Role.VIEWER)
    expiring = trial.token("dave", Role.VIEWER, expires=datetime.now(UTC) + timedelta(seconds=2))

    def follow(url: str, cookie: str, begun: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
        connection = connect_to(url, None)
        try:
            connection.request("GET", "/page/events", headers={"Cookie": cookie})
            answer = connection.getresponse()
            message_of(answer, "state")
            loop.call_soon_threadsafe(begun.set)
            while True:
                message_of(answer, "alive")
        except EOFError:
            pass
        finally:
            connection.close()

    async def look() -> None:
        async with served_page(tokens=tokens) as site:
            cookies = [(await sign_in(site.url, each))[2].split(";")[0] for each in (kept, removed, expiring)]
            begun = asyncio.Event()
            following = asyncio.create_task(
                asyncio.to_thread(follow, site.url, cookies[1], begun, asyncio.get_running_loop())
            )
            await begun.wait()
            tokens.write_text(without)
            while not following.done():  # its stream ends too, whatever happens meanwhile
                site.events.handle(event_record("a switch comes and goes"))
                await asyncio.sleep(feed.PERIOD_S / 4)
            await following
            answers = [
                (await answer_to(site.url, "/page/session", headers={"Cookie": each}))[1] for each in cookies[:2]
            ]
            assert ["refusal" in answer for answer in answers] == [False, True]
            while (await answer_to(site.url, "/page/explain?name=x", headers={"Cookie": cookies[2]}))[0] != 401:
                await asyncio.sleep(0.05)

    asyncio.run(look())


def test_wrong_roles_wrong_tokens_and_foreign_pages_are_refused(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    job, agent, viewer = (
        trial.token("gpt", Role.JOB, "vision"),
        trial.token("h0", Role.AGENT),
        trial.token("bob", Role.VIEWER),
    )

    async def look() -> None:
        async with served_page(tokens=tmp_path / "tokens.yaml") as site:
            assert [(await sign_in(site.url, each))[0] for each in (job, agent, "nobody's")] == [403, 403, 401]
            for body in ("", "[]", "{}", '{"token": 3}', '{"token": "\\ud800"}', '{"token": "' + "x" * 20_000 + '"}'):
                assert (await answer_to(site.url, "/page/session", "POST", body))[0] == 401
            foreign = {"Sec-Fetch-Site": "cross-site"}
            body = json.dumps({"token": viewer})
            assert (await answer_to(site.url, "/page/session", "POST", body, foreign))[0] == 403

    asyncio.run(look())


def test_attempts_to_sign_in_are_limited(tmp_path: Path) -> None:
    token = Trial(tmp_path).token("bob", Role.VIEWER)

    async def look() -> None:
        async with served_page(tokens=tmp_path / "tokens.yaml") as site:
            statuses = [(await sign_in(site.url, f"guess-{number}"))[0] for number in range(12)]
            assert set(statuses) == {401, 429}
            assert (await sign_in(site.url, token))[0] == 429

    asyncio.run(look())


def test_tokens_cannot_be_guessed_where_sign_in_is_not_counted(tmp_path: Path) -> None:
    token = Trial(tmp_path).token("bob", Role.VIEWER)

    async def look() -> None:
        async with served_page(tokens=tmp_path / "tokens.yaml") as site:
            known, guessed = ({"Authorization": f"Bearer {each}"} for each in (token, "guess"))
            assert (await answer_to(site.url, "/page/session", headers=known))[:2] == (
                200,
                '{"name":"bob","session":false}',
            )
            # These go the way of all refusals, which are slowed down and logged.
            assert (await answer_to(site.url, "/page/session", headers=guessed))[0] == 401

    asyncio.run(look())
