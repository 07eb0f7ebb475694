"""The HTTP server: health for everybody, certificates and tokens for the rest, and connections that waste nothing."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

import controller.web.server as server
from controller.access.authenticator import Authenticator, authenticator
from controller.access.authority import Authority
from controller.access.identity import Role
from controller.access.tls_files import ServerTls
from controller.clock import WallClock
from controller.metrics import REGISTRY
from controller.store.store import Store
from controller.web.application import application
from controller.web.callers import require
from controller.web.presence import Presence
from tests.controller.access.secured import Trial, secured
from tests.controller.web.serving import Answer, get, serving
from tests.patience import PATIENCE_S


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def secret(who: Authenticator) -> Route:
    async def answer(request: Request) -> Response:
        return PlainTextResponse(require(request, who, Role.VIEWER).name)

    return Route("/secret", answer)


async def health(url: str, path: str) -> tuple[int, str]:
    answer = await asyncio.to_thread(get, url, path)
    return answer.status, answer.body


def test_health_says_up_or_down_only(tmp_path: Path) -> None:
    async def ask() -> None:
        store = Store.open(str(tmp_path / "trainyard.db"), WallClock())
        presence = Presence()
        async with secured(store) as controller, serving(presence) as url:
            assert await health(url, "/healthz") == (200, "up\n")
            assert await health(url, "/readyz") == (503, "down\n")
            with presence.of(controller.core.context):
                assert await health(url, "/readyz") == (200, "up\n")
                store.database.health.report("database: the disk is full")
                assert await health(url, "/readyz") == (503, "down\n")
                store.database.health.report("")
                assert await health(url, "/readyz") == (200, "up\n")
            assert await health(url, "/readyz") == (503, "down\n")
            assert await health(url, "/healthz") == (200, "up\n")
        await store.close()

    run(ask)


def test_a_foreign_page_reaches_nothing_on_loopback() -> None:
    async def ask() -> None:
        async with serving(Presence()) as url:
            assert (await asyncio.to_thread(get, url, "/healthz", {"Host": "evil.example"})).status == 400

    run(ask)


def test_a_caller_needs_the_role_and_shows_it_by_certificate_or_token(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    viewer, job = trial.token("bob", Role.VIEWER), trial.token("gpt", Role.JOB, "vision")
    bare = ssl.create_default_context(cafile=trial.ca)
    shown = ssl.create_default_context(cafile=trial.ca)
    shown.load_cert_chain(tmp_path / "viewer.pem", tmp_path / "viewer.key")

    async def ask() -> None:
        who = authenticator(tmp_path / "tokens.yaml", None)
        async with serving(Presence(), [secret(who)], ServerTls.model_validate(trial.tls)) as url:

            async def answer(path: str, token: str | None, context: ssl.SSLContext) -> Answer:
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                return await asyncio.to_thread(get, url, path, headers, context)

            assert (await answer("/secret", None, shown)).body == "grafana"
            assert (await answer("/secret", viewer, bare)).body == "bob"
            assert (await answer("/healthz", None, bare)).body == "up\n"
            assert (await answer("/secret", None, bare)).status == 401
            assert (await answer("/secret", "x", bare)).status == 401
            assert (await answer("/secret", job, bare)).status == 403

    run(ask)


def test_certificates_and_authorities_are_renewed_while_it_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.access.reloading_file._CHECKED_EVERY_S", 0.0)
    trial = Trial(tmp_path)
    old_client = ssl.create_default_context(cafile=trial.ca)
    old_client.load_cert_chain(tmp_path / "viewer.pem", tmp_path / "viewer.key")

    async def ask() -> None:
        async with serving(Presence(), [secret(authenticator(None, None))], ServerTls.model_validate(trial.tls)) as url:

            async def name(context: ssl.SSLContext) -> str:
                try:
                    return (await asyncio.to_thread(get, url, "/secret", None, context)).body
                except OSError as error:  # TLS refuses
                    return type(error).__name__

            assert await name(old_client) == "grafana"
            (tmp_path / "controller.pem").write_text("half a certi")
            assert await name(old_client) == "grafana"
            (tmp_path / "new").mkdir()
            renewed = Authority.new(days=1)
            renewed.pair.write(tmp_path / "new", "ca")
            renewed.server("controller", ["localhost", "127.0.0.1"], days=1).write(tmp_path / "new", "controller")
            renewed.client("carol", Role.VIEWER, "", days=1).write(tmp_path / "new", "carol")
            for file in ("ca.pem", "controller.key", "controller.pem"):
                os.replace(tmp_path / "new" / file, tmp_path / file)  # noqa: PTH105 # as programs do that renew
            new_client = ssl.create_default_context(cafile=trial.ca)
            new_client.load_cert_chain(tmp_path / "new" / "carol.pem", tmp_path / "new" / "carol.key")
            assert await name(new_client) == "carol"
            new_client_of_old = ssl.create_default_context(cafile=trial.ca)
            new_client_of_old.load_cert_chain(tmp_path / "viewer.pem", tmp_path / "viewer.key")
            assert await name(new_client_of_old) not in ("grafana", "carol")

    run(ask)


def test_a_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_FIRST_REQUEST_LIMIT_S", 0.1)

    async def wait() -> None:
        async with serving(Presence()) as url:
            at = urlsplit(url)
            reader, writer = await asyncio.open_connection(at.hostname, at.port)
            writer.write(b"GET /healthz HTTP/1.1\r\n")
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()

    run(wait)


async def large(_: Request) -> Response:
    return PlainTextResponse("x" * 20_000_000)


async def echo(request: Request) -> Response:
    return PlainTextResponse(await request.body())


_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param((_HEALTH, b"GET /healthz HT"), id="a second request that never ends"),
        pytest.param((_HEALTH,), id="no second request"),
        pytest.param((b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",), id="half a body"),
    ],
)
def test_a_client_that_stops_in_the_middle_is_closed(sent: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_FIRST_REQUEST_LIMIT_S", 0.2)
    monkeypatch.setattr(server, "_HELD_UP_LIMIT_S", 0.2)

    async def wait() -> None:
        async with serving(Presence(), [Route("/echo", echo, methods=["POST"])]) as url:
            at = urlsplit(url)
            reader, writer = await asyncio.open_connection(at.hostname, at.port)
            # On a slow machine even the first request may come too late.
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                for octets in sent:
                    writer.write(octets)
                    if octets is not sent[-1]:
                        await reader.readuntil(b"up\n")
                await reader.read()
            writer.close()

    run(wait)


def test_a_client_that_never_reads_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_FIRST_REQUEST_LIMIT_S", 0.2)
    monkeypatch.setattr(server, "_HELD_UP_LIMIT_S", 0.2)
    lost = asyncio.Event()
    connection_lost = server._Protocol.connection_lost

    def note(self: server._Protocol, exc: Exception | None) -> None:
        connection_lost(self, exc)
        lost.set()

    monkeypatch.setattr(server._Protocol, "connection_lost", note)

    async def wait() -> None:
        async with serving(Presence(), [Route("/large", large)]) as url:
            at = urlsplit(url)
            with socket.create_connection((at.hostname, at.port)) as client:
                client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await lost.wait()

    run(wait)


def test_a_client_that_reads_slowly_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The looks at the connection come here once the client has read something, not by a timer."""
    monkeypatch.setattr(server, "_FIRST_REQUEST_LIMIT_S", 1e6)
    monkeypatch.setattr(server, "_HELD_UP_LIMIT_S", 1e6)
    made: list[server._Protocol] = []
    connection_made = server._Protocol.connection_made

    def note(self: server._Protocol, transport: asyncio.Transport) -> None:
        connection_made(self, transport)
        made.append(self)

    monkeypatch.setattr(server._Protocol, "connection_made", note)

    async def parts(_: Request) -> Response:
        async def part() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b"x" * 1_000_000

        return StreamingResponse(part())

    async def wait() -> None:
        async with serving(Presence(), [Route("/parts", parts)]) as url:
            at = urlsplit(url)
            reader, writer = await asyncio.open_connection(at.hostname, at.port, limit=64 * 1024)
            writer.write(b"GET /parts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            received, looks, seen = 0, 0, -1
            while octets := await reader.read(200_000):
                received += len(octets)
                if seen < (seen := made[0]._num_resumed):
                    made[0]._close_if_held_up()
                    looks += 1
            assert received > 20 * 1_000_000
            assert looks > 3
            writer.close()

    run(wait)


def test_whoever_takes_all_connections_of_an_address_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.web.seats.MOST_OF_ONE", 3)
    token = Trial(tmp_path).token("prometheus", Role.VIEWER)

    async def connect() -> None:
        async with serving(Presence(), [secret(authenticator(tmp_path / "tokens.yaml", None))]) as url:
            at = urlsplit(url)
            known = await asyncio.open_connection(at.hostname, at.port)
            asking = f"GET /secret HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()

            async def scrape() -> None:
                known[1].write(asking)
                await known[0].readuntil(b"prometheus")

            await scrape()
            idle = [await asyncio.open_connection(at.hostname, at.port) for _ in range(5)]
            # Of these the oldest go. Whoever has shown a credential stays, and newcomers are answered.
            for reader, _ in idle[:2]:
                with suppress(ConnectionError):
                    assert await reader.read() == b""
            await scrape()
            assert await health(url, "/healthz") == (200, "up\n")
            for _, writer in (known, *idle):
                writer.close()

    run(connect)


def test_a_certificate_gives_a_seat_before_the_first_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.web.seats.MOST_OF_ONE", 2)
    trial = Trial(tmp_path)
    bare = ssl.create_default_context(cafile=trial.ca)
    shown = ssl.create_default_context(cafile=trial.ca)
    shown.load_cert_chain(tmp_path / "viewer.pem", tmp_path / "viewer.key")

    async def connect() -> None:
        async with serving(Presence(), tls=ServerTls.model_validate(trial.tls)) as url:
            at = urlsplit(url)
            reader, writer = await asyncio.open_connection(at.hostname, at.port, ssl=shown)
            idle = [await asyncio.open_connection(at.hostname, at.port, ssl=bare) for _ in range(4)]
            for each, _ in idle[:2]:
                with suppress(ConnectionError):
                    assert await each.read() == b""
            writer.write(_HEALTH)
            await reader.readuntil(b"up\n")
            for _, each in ((reader, writer), *idle):
                each.close()

    run(connect)


def test_a_failure_is_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: Request) -> Response:
        raise RuntimeError("the reason")

    def count() -> float:
        return (
            REGISTRY.get_sample_value("trainyard_calls_total", {"protocol": "http", "tenant": "", "status": "INTERNAL"})
            or 0.0
        )

    async def ask() -> None:
        async with serving(Presence(), [Route("/fail", fail)]) as url:
            assert (await asyncio.to_thread(get, url, "/fail")).status == 500

    before = count()
    run(ask)
    assert count() == before + 1
    (record,) = [each for each in caplog.records if each.name == "controller.web.refusals"]
    assert record.getMessage() == "/fail has failed"
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "the reason"


def test_an_address_that_is_taken_is_named() -> None:
    async def bind() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            with pytest.raises(OSError, match=f"web: cannot listen on {address}"):
                async with server.serving(address, None, application(Presence(), is_local=True)):
                    pass

    run(bind)
