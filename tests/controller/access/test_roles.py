"""Who may do what behind TLS: every role, another tenant's jobs, and strangers. What is refused changes nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from controller.access.authority import Authority
from controller.access.identity import Role
from controller.api.operations.methods import EXPLAIN, LIST_CONTROLLERS, LIST_JOBS
from hostlib.connection import Connection
from hostlib.credentials import Credentials
from hostlib.errors import RefusalReason, RefusedError, UnreachableError
from hostlib.telemetry.probe_agent import ProbeExchange
from hostlib.types import Flow, FlowGroup, Job, Nic, Profile
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from tests.controller.access.secured import Secured, Trial, secured
from tests.patience import PATIENCE_S

OK = grpc.StatusCode.OK
GPT = Job("gpt", ("h0", "h2"), 8, Profile(1.0, 0.5, 8.0))
RING = FlowGroup("ring", (Flow(Nic("h0"), Nic("h2"), 10**9),))
JOB_CALLS = (
    methods.REGISTER_JOB,
    methods.REGISTER_FLOW_GROUPS,
    methods.REPORT_PROFILE,
    methods.START_FLOW_GROUPS,
    methods.HEARTBEAT,
    methods.DIRECTIVES,
    methods.DEREGISTER_JOB,
)


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


@asynccontextmanager
async def connected(controller: Secured, credentials: Credentials, owner_token: str = "t") -> AsyncIterator[Connection]:
    async with Connection(controller.address, owner_token, PATIENCE_S, credentials=credentials) as connection:
        yield connection


async def status_of(controller: Secured, credentials: Credentials, path: str, request: bytes = b"") -> grpc.StatusCode:
    """The status of a call with these credentials; OK for a stream that has begun."""

    def call() -> grpc.StatusCode:
        with credentials.channel(controller.address) as channel:
            answers = channel.unary_stream(path)(request, timeout=PATIENCE_S, metadata=credentials.metadata())
            try:
                next(iter(answers))
            except StopIteration:
                return grpc.StatusCode.OK
            except grpc.RpcError as error:
                return error.code()
            answers.cancel()
            return grpc.StatusCode.OK

    return await asyncio.to_thread(call)


def exchange(host: str) -> ProbeExchange:
    return ProbeExchange(host, 1, 0, 1, (), {}, 0)


def test_a_tenant_registers_its_jobs_and_sees_only_them(trial: Trial) -> None:
    async def scenario() -> None:
        async with (
            secured(tls=trial.tls) as controller,
            connected(controller, trial.certificate("job-vision")) as vision,
            connected(controller, trial.certificate("job-speech")) as speech,
            connected(controller, trial.certificate("viewer")) as viewer,
        ):
            await vision.register_job(GPT)
            assert await vision.register_flow_groups("gpt", [RING])
            await speech.register_job(Job("bert", ("h1", "h3"), 8, Profile(1.0, 0.5, 8.0)))
            await controller.core.planner.settle()
            assert [job.name for job in (await vision.plan()).jobs] == ["gpt"]
            assert [job.name for job in (await speech.plan()).jobs] == ["bert"]
            assert {flow.job for flow in (await speech.plan()).flows} == set()
            assert {job.name for job in (await viewer.plan()).jobs} == {"gpt", "bert"}

    run(scenario)


def test_another_tenant_can_do_nothing_to_a_job_even_with_its_token(trial: Trial) -> None:
    async def scenario() -> None:
        async with (
            secured(tls=trial.tls) as controller,
            connected(controller, trial.certificate("job-vision"), "stolen") as owner,
            connected(controller, trial.certificate("job-speech"), "stolen") as thief,
        ):
            await owner.register_job(GPT)
            await owner.register_flow_groups("gpt", [RING])
            before = controller.core.registry.jobs
            attacks: list[Callable[[], Coroutine[Any, Any, Any]]] = [
                lambda: thief.register_job(GPT),
                lambda: thief.register_flow_groups("gpt", [FlowGroup("more", RING.flows)]),
                lambda: thief.report_profile("gpt", Profile(9.0, 0.5, 900.0)),
                lambda: thief.start_flow_groups("gpt", {}),
                lambda: thief.heartbeat("gpt"),
                lambda: anext(thief.directives("gpt")),
                lambda: thief.deregister("gpt"),
            ]
            for attack in attacks:
                with pytest.raises(RefusedError, match="belongs to another tenant") as refused:
                    await attack()
                assert refused.value.reason is RefusalReason.NOT_OWNER
            assert controller.core.registry.jobs == before
            assert controller.core.calls.refusals["speech", "PERMISSION_DENIED"] == len(attacks)

    run(scenario)


@pytest.mark.parametrize("client", ["agent-h0", "operator", "viewer"])
def test_only_jobs_call_what_is_for_jobs(trial: Trial, client: str) -> None:
    async def scenario() -> None:
        async with secured(tls=trial.tls) as controller:
            for method in JOB_CALLS:
                status = await status_of(controller, trial.certificate(client), method.path)
                assert status is grpc.StatusCode.PERMISSION_DENIED, method.name
            assert controller.core.registry.jobs == ()
            assert controller.core.calls.refusals["", "PERMISSION_DENIED"] == len(JOB_CALLS)

    run(scenario)


@pytest.mark.parametrize("client", ["job-vision", "agent-h0"])
def test_only_operators_and_viewers_see_the_whole(trial: Trial, client: str) -> None:
    async def scenario() -> None:
        async with secured(tls=trial.tls) as controller:
            for method in (LIST_JOBS.method, LIST_CONTROLLERS.method, EXPLAIN):
                status = await status_of(controller, trial.certificate(client), method.path)
                assert status is grpc.StatusCode.PERMISSION_DENIED, method.name
            for permitted in ("operator", "viewer"):
                status = await status_of(controller, trial.certificate(permitted), LIST_JOBS.method.path)
                assert status is grpc.StatusCode.OK

    run(scenario)


@pytest.mark.parametrize(
    ("client", "status"),
    [("job-vision", OK), ("viewer", OK), ("operator", OK), ("agent-h0", grpc.StatusCode.PERMISSION_DENIED)],
)
def test_jobs_and_viewers_see_the_plan_where_addresses_are_and_how_loaded_paths_are(
    trial: Trial, client: str, status: grpc.StatusCode
) -> None:
    async def scenario() -> None:
        async with secured(tls=trial.tls) as controller:
            for method in (methods.GET_PLAN, methods.LOCATE_NICS, methods.GET_PATH_LOADS):
                assert await status_of(controller, trial.certificate(client), method.path) is status, method.name

    run(scenario)


def test_an_agent_speaks_for_its_own_host_alone(trial: Trial) -> None:
    async def scenario() -> None:
        async with (
            secured(tls=trial.tls) as controller,
            connected(controller, trial.certificate("agent-h0")) as agent,
            connected(controller, trial.certificate("job-vision")) as job,
        ):
            await agent.exchange_probes(exchange("h0"))
            with pytest.raises(RefusedError, match=r"host: agent 'h0' may not speak for host 'h1'"):
                await agent.exchange_probes(exchange("h1"))
            with pytest.raises(RefusedError, match="ExchangeProbes: is for agent, not for job"):
                await job.exchange_probes(exchange("h0"))

    run(scenario)


@pytest.mark.parametrize(("agents", "is_taken"), [(True, True), (False, False)])
def test_without_identities_probes_are_reported_only_where_that_is_written_down(
    *, agents: bool, is_taken: bool
) -> None:
    async def scenario() -> None:
        async with secured(agents=agents) as controller, connected(controller, Credentials()) as anybody:
            if is_taken:
                await anybody.exchange_probes(exchange("h0"))
            else:
                with pytest.raises(
                    RefusedError, match=r"ExchangeProbes: is for agent, .*; configure identities, or agents: true"
                ):
                    await anybody.exchange_probes(exchange("h0"))

    run(scenario)


def test_who_has_no_certificate_gets_no_answer(trial: Trial, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with secured(tls=trial.tls) as controller:
            for stranger in (Credentials(), Credentials(ca=trial.ca), _of_another_authority(trial, tmp_path)):
                async with Connection(controller.address, "t", 5.0, credentials=stranger) as connection:
                    with pytest.raises(UnreachableError):
                        await connection.register_job(GPT)
            assert controller.core.registry.jobs == ()

    run(scenario)


def test_a_certificate_that_has_expired_is_refused_on_an_open_connection_too(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with (
            secured(tls=trial.tls) as controller,
            connected(controller, trial.certificate("job-vision")) as job,
        ):
            await job.register_job(GPT)
            monkeypatch.setattr(controller.core.calls.authenticator, "_now_s", lambda: 4e9)
            with pytest.raises(RefusedError, match="the client certificate has expired") as refused:
                await job.heartbeat("gpt")
            assert refused.value.reason is RefusalReason.UNAUTHENTICATED
            assert controller.core.calls.refusals["", "UNAUTHENTICATED"] == 1

    run(scenario)


@pytest.mark.parametrize("role", ["", "root", "job"])
def test_a_certificate_without_an_identity_is_refused(trial: Trial, role: str) -> None:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    fields = [x509.NameAttribute(NameOID.COMMON_NAME, "somebody")]
    if role:
        fields.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, role))
    trial.authority._sign(x509.Name(fields), 1, None, ExtendedKeyUsageOID.CLIENT_AUTH).write(trial.folder, "odd")

    async def scenario() -> None:
        async with secured(tls=trial.tls) as controller:
            status = await status_of(controller, trial.certificate("odd"), methods.HEARTBEAT.path)
            assert status is grpc.StatusCode.UNAUTHENTICATED

    run(scenario)


def test_text_of_callers_reaches_neither_log_nor_answer_raw(trial: Trial, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with (
            secured(tls=trial.tls) as controller,
            connected(controller, trial.certificate("job-vision")) as job,
        ):
            name = "\x1b[2J\nroot: all is well" + "x" * 100_000
            request = wire.HeartbeatRequest(job=name, owner_token="t").SerializeToString()
            with job._channel._channels[0]._credentials.channel(controller.address) as channel:
                call = channel.unary_unary(methods.HEARTBEAT.path)
                with pytest.raises(grpc.RpcError) as refused:
                    await asyncio.to_thread(call, request, PATIENCE_S)
            details = refused.value.details()
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND
            assert details.isprintable()
            assert len(details) < 2_000

    run(scenario)
    assert "\x1b" not in caplog.text


def test_undecodable_requests_are_refused_by_name_and_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with secured() as controller:
            for method in (EXPLAIN, LIST_JOBS.method, methods.REGISTER_JOB, methods.GET_PLAN, methods.LOCATE_NICS):
                status = await status_of(controller, Credentials(), method.path, b"\xff\xff\xff")
                assert status is grpc.StatusCode.INVALID_ARGUMENT, method.name

    run(scenario)
    assert "Traceback" not in caplog.text


def _of_another_authority(trial: Trial, folder: Path) -> Credentials:
    Authority.new(days=1).client("vision", Role.JOB, "vision", days=1).write(folder, "foreign")
    return Credentials(ca=trial.ca, certificate=folder / "foreign.pem", key=folder / "foreign.key")


def test_a_tenant_sees_no_reason_that_names_anothers_job(trial: Trial) -> None:
    async def scenario() -> None:
        async with (
            secured(tls=trial.tls) as controller,
            connected(controller, trial.certificate("job-vision")) as vision,
            connected(controller, trial.certificate("job-speech")) as speech,
            connected(controller, trial.certificate("viewer")) as viewer,
        ):
            await vision.register_job(GPT)
            await vision.register_flow_groups("gpt", [RING])
            await speech.register_job(Job("bert", ("h1", "h3"), 8, Profile(1.0, 0.5, 8.0)))
            await speech.register_flow_groups("bert", [FlowGroup("ring", (Flow(Nic("h1"), Nic("h3"), 10**6),))])
            await controller.core.planner.settle()
            assert any("'gpt'" in job.reason for job in (await viewer.plan()).jobs if job.name == "bert")
            assert "gpt" not in repr(await speech.plan())

    run(scenario)
