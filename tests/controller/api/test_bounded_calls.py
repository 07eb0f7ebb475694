"""What one call may cost the others: the event loop is shared, memory is given back, and streams end."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from controller.access.identity import Identity, Role
from controller.access.refusal_log import RefusalLog
from controller.api import calls as admission
from controller.api import rate_limiter
from controller.api.rate_limiter import RateLimiter
from hostlib.connection import Connection
from hostlib.errors import RefusalReason, RefusedError
from hostlib.types import Flow, FlowGroup, Nic
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from tests.controller.access.secured import Trial, secured
from tests.controller.access.test_roles import GPT, RING, run
from tests.patience import PATIENCE_S


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.01)


async def _turns_during(call: Awaitable[object]) -> int:
    """How often another task had its turn of the event loop during a call."""
    turns, is_over = 0, False

    async def count() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    try:
        await call
    finally:
        is_over = True
        await counting
    return turns


@pytest.mark.parametrize("flows_per_group", [1, 20_000])
def test_others_have_the_event_loop_while_many_flow_groups_are_registered(flows_per_group: int) -> None:
    flows = [wire.Flow(source=wire.Nic(host="h0"), destination=wire.Nic(host="h2"), size_bytes=1)] * flows_per_group
    num_groups = 20_000 if flows_per_group < 2 else 1

    async def scenario() -> None:
        async with secured() as controller, Connection(controller.address, "t", PATIENCE_S) as client:
            await client.register_job(GPT)
            registry = controller.core.registry
            nic, far = (registry.fabric.nics[host][0].address for host in ("h0", "h2"))
            groups = []
            for number in range(num_groups):
                group = wire.FlowGroup(name=f"g{number}", flows=flows)
                for port, flow in enumerate(group.flows):
                    flow.five_tuple.CopyFrom(
                        wire.FiveTuple(
                            source_address=nic,
                            destination_address=far,
                            protocol=17,
                            source_port=port,
                            destination_port=number,
                        )
                    )
                groups.append(group)
            request = wire.RegisterFlowGroupsRequest(job="gpt", owner_token="t", flow_groups=groups)
            turns = await _turns_during(client._channel.call(methods.REGISTER_FLOW_GROUPS, request, PATIENCE_S))
            (job,) = registry.jobs
            assert len(job.flow_groups) == num_groups
            assert turns > 200

    run(scenario)


def test_a_refused_request_is_not_kept_until_garbage_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[weakref.ref[object]] = []
    from_string = admission._Call.__init__

    def note(call: admission._Call[object, object], *arguments: object) -> None:
        from_string(call, *arguments)  # type: ignore[arg-type]
        held.append(weakref.ref(call))

    monkeypatch.setattr(admission._Call, "__init__", note)

    async def scenario() -> None:
        async with secured() as controller, Connection(controller.address, "t", PATIENCE_S) as client:
            gc.collect()
            gc.disable()
            try:
                for refused in (client.heartbeat("none"), anext(client.directives("none"))):
                    with pytest.raises(RefusedError):
                        await refused
                assert len(held) == 2
                kept = [call for each in held if (call := each()) is not None]
                assert [call.request for call in kept] == [None] * len(kept)  # type: ignore[attr-defined]
            finally:
                gc.enable()

    run(scenario)


@pytest.mark.parametrize("how", ["expires", "is removed"])
def test_a_stream_ends_once_its_token_does_not_hold_any_more(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(admission, "CHECKED_EVERY_S", 0.05)
    token = trial.token("nightly", Role.JOB, "vision")

    async def scenario() -> None:
        credentials = trial.certificate("job-vision", token)
        async with (
            secured(tls=trial.tls, tokens=trial.folder / "tokens.yaml") as controller,
            Connection(controller.address, "t", PATIENCE_S, credentials=credentials) as client,
        ):
            await client.register_job(GPT)
            await controller.core.planner.settle()
            following = client.directives("gpt")
            await anext(following)
            ending = asyncio.ensure_future(anext(following))
            await asyncio.sleep(0.2)
            assert not ending.done()
            authenticator = controller.core.calls.authenticator
            if how == "expires":
                monkeypatch.setattr(authenticator, "_verified", {})
                monkeypatch.setattr(authenticator, "_tokens", None)
            else:
                (trial.folder / "tokens.yaml").write_text("[]\n")
            with pytest.raises(RefusedError, match="token") as refused:
                await ending
            assert refused.value.reason is RefusalReason.UNAUTHENTICATED
            assert controller.core.calls._connections._calls["vision/nightly"] == 0

    run(scenario)


def test_a_client_that_does_not_take_an_answer_loses_it(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "TAKE_LIMIT_S", 0.3)
    flows = tuple(Flow(Nic("h0"), Nic("h2"), 10**6) for _ in range(4_000))

    async def scenario() -> None:
        credentials = trial.certificate("job-vision")
        async with (
            secured(tls=trial.tls) as controller,
            Connection(controller.address, "t", PATIENCE_S, credentials=credentials) as client,
        ):
            await client.register_job(GPT)
            await client.register_flow_groups("gpt", [FlowGroup("many", flows)])
            await controller.core.planner.settle()
            calls = controller.core.calls._connections._calls
            with credentials.channel(controller.address) as channel:
                call = channel.unary_stream(methods.GET_PLAN.path)(b"", timeout=PATIENCE_S)
                await asyncio.to_thread(next, call)
                await _until(lambda: calls["vision/vision"] == 0)
                call.cancel()
            assert len((await client.plan()).flows) == len(flows)

    run(scenario)


def test_few_requests_of_a_caller_come_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limiter, "MOST_READ_AT_ONCE", 2)

    async def scenario() -> None:
        limiter = RateLimiter()
        reading = 0

        async def read(account: str, *, ends: asyncio.Event) -> None:
            nonlocal reading
            async with limiter.reading(account):
                reading += 1
                await ends.wait()

        ends = asyncio.Event()
        tasks = [asyncio.create_task(read(account, ends=ends)) for account in ("a", "a", "a", "a", "b")]
        await asyncio.sleep(0.05)
        assert reading == 3
        ends.set()
        await asyncio.gather(*tasks)
        assert reading == 5

    run(scenario)


def test_a_flood_of_refusals_fills_neither_the_trail_nor_the_log(
    trial: Trial, caplog: pytest.LogCaptureFixture
) -> None:
    recorded: list[str] = []

    def record(_caller: Identity, _method: str, _subject: str, _outcome: str, problem: str) -> None:
        recorded.append(problem)

    async def scenario() -> None:
        async with (
            secured(tls=trial.tls) as controller,
            Connection(controller.address, "t", PATIENCE_S, credentials=trial.certificate("job-speech")) as flood,
            Connection(controller.address, "t", PATIENCE_S, credentials=trial.certificate("job-vision")) as owner,
        ):
            await owner.register_job(GPT)
            controller.core.calls.record = record
            for _ in range(300):
                with pytest.raises(RefusedError):
                    await flood.register_flow_groups("gpt", [RING])
            assert 100 <= len(recorded) < 250
            assert controller.core.calls.refusals["speech", "PERMISSION_DENIED"] == 300
            await owner.deregister("gpt")
            assert recorded[-1] == ""

    run(scenario)

    async def strangers() -> None:
        log = RefusalLog(asyncio.get_running_loop().time)
        caplog.clear()
        for number in range(5_000):
            address = f"ipv6:[2001:db8::{number:x}]"
            log.tell("Heartbeat", f"{address}:5000", address, "no token")

    run(strangers)
    assert 1 <= len(caplog.records) < 100
