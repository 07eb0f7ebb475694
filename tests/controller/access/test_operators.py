"""Operators withdraw jobs, and the audit trail has who called what."""

from pathlib import Path

import grpc
import pytest
from sqlalchemy import select

from controller.access.identity import Identity
from controller.api.operations import operations_pb2
from controller.api.operations.methods import (
    DRAIN,
    LIST_DRAINS,
    LIST_JOBS,
    LIST_PINS,
    PAUSE,
    PIN,
    RELEASE,
    RESUME,
    UNDRAIN,
    UNPIN,
    WITHDRAW,
)
from controller.clock import WallClock
from controller.store.schema import CALL
from controller.store.store import Store
from hostlib.errors import RefusedError
from hostlib.types import Job
from tests.controller.access.secured import Trial, secured
from tests.controller.access.test_roles import GPT, OK, connected, run, status_of


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


def test_an_operator_withdraws_a_job_whose_client_does_not_get_it_back(trial: Trial) -> None:
    async def scenario() -> None:
        async with (
            secured(tls=trial.tls) as controller,
            connected(controller, trial.certificate("job-vision"), "squatter") as squatter,
            connected(controller, trial.certificate("job-speech"), "owner") as owner,
        ):
            await squatter.register_job(GPT)
            request = operations_pb2.WithdrawRequest(jobs=["gpt"]).SerializeToString()
            for other in ("viewer", "job-vision", "job-speech", "agent-h0"):
                status = await status_of(controller, trial.certificate(other), WITHDRAW.path, request)
                assert status is grpc.StatusCode.PERMISSION_DENIED
            with pytest.raises(RefusedError):
                await owner.register_job(GPT)
            assert await status_of(controller, trial.certificate("operator"), WITHDRAW.path, request) is OK
            with pytest.raises(RefusedError, match="was withdrawn by operator 'alice'"):
                await squatter.register_job(GPT)
            await owner.register_job(GPT)
            assert [job.tenant for job in controller.core.registry.jobs] == ["speech"]
            unknown = operations_pb2.WithdrawRequest(jobs=["gpt", "none"]).SerializeToString()
            status = await status_of(controller, trial.certificate("operator"), WITHDRAW.path, unknown)
            assert status is grpc.StatusCode.NOT_FOUND
            many = operations_pb2.WithdrawRequest(jobs=["gpt"] * 1_001).SerializeToString()
            status = await status_of(controller, trial.certificate("operator"), WITHDRAW.path, many)
            assert status is grpc.StatusCode.INVALID_ARGUMENT

    run(scenario)


def test_a_job_whose_withdrawal_could_not_be_stored_goes_on(trial: Trial, tmp_path: Path) -> None:
    database, elsewhere = tmp_path / "controller.db", tmp_path / "elsewhere.db"

    async def scenario() -> None:
        store = Store.open(str(database), WallClock())
        async with (
            secured(store, tls=trial.tls) as controller,
            connected(controller, trial.certificate("job-vision")) as client,
        ):
            await client.register_job(GPT)
            database.rename(elsewhere)
            request = operations_pb2.WithdrawRequest(jobs=["gpt"]).SerializeToString()
            status = await status_of(controller, trial.certificate("operator"), WITHDRAW.path, request)
            assert status is grpc.StatusCode.INTERNAL
            elsewhere.rename(database)
            await client.register_job(GPT)
            await client.heartbeat("gpt")
        await store.close()

    run(scenario)


def test_only_operators_drain_and_the_audit_trail_has_it(trial: Trial, tmp_path: Path) -> None:
    target = operations_pb2.DrainTarget(kind=operations_pb2.HOST, name="h1")
    drain = operations_pb2.DrainRequest(target=target, force=True).SerializeToString()
    database = str(tmp_path / "controller.db")

    async def scenario() -> None:
        store = Store.open(database, WallClock())
        async with secured(store, tls=trial.tls) as controller:

            async def status(who: str, path: str, request: bytes = b"") -> grpc.StatusCode:
                return await status_of(controller, trial.certificate(who), path, request)

            for other in ("viewer", "job-vision", "agent-h0"):
                for path, request in ((DRAIN.path, drain), (UNDRAIN.path, target.SerializeToString())):
                    assert await status(other, path, request) is grpc.StatusCode.PERMISSION_DENIED
            assert not controller.core.draining.drains
            assert await status("operator", DRAIN.path, drain) is OK
            assert await status("viewer", LIST_DRAINS.method.path) is OK
            [made] = controller.core.draining.drains
            assert (str(made.target), made.is_forced, made.by) == ("host h1", True, "alice")
            assert store.drains() == [made]
            assert await status("operator", UNDRAIN.path, target.SerializeToString()) is OK
            assert await status("operator", UNDRAIN.path, target.SerializeToString()) is grpc.StatusCode.NOT_FOUND
            assert store.drains() == []
        await store.trail.flush()
        calls = store.database.read(
            lambda connection: connection.execute(
                select(CALL).where(CALL.c.identity == "alice").order_by(CALL.c.id)
            ).all()
        )
        assert [(call.identity, call.method, call.subject, call.outcome) for call in calls] == [
            ("alice", "Drain", "host h1 --force", "done"),
            ("alice", "Undrain", "host h1", "done"),
            ("alice", "Undrain", "host h1", "refused"),
        ]
        await store.close()

    run(scenario)


def test_only_operators_decide_by_hand_and_the_audit_trail_has_it(trial: Trial, tmp_path: Path) -> None:
    pause = operations_pb2.PauseRequest(reason="maintenance").SerializeToString()
    pin = operations_pb2.PinRequest(name="gpt", level=7, for_s=60.0).SerializeToString()
    unpin = operations_pb2.UnpinRequest(name="gpt").SerializeToString()
    calls = ((PIN, pin), (UNPIN, unpin), (PAUSE, pause), (RELEASE, b""), (RESUME, b""), (UNPIN, unpin))
    database = str(tmp_path / "controller.db")

    async def scenario() -> None:
        store = Store.open(database, WallClock())
        async with (
            secured(store, tls=trial.tls) as controller,
            connected(controller, trial.certificate("job-vision")) as vision,
        ):
            await vision.register_job(GPT)

            async def status(who: str, path: str, request: bytes = b"") -> grpc.StatusCode:
                return await status_of(controller, trial.certificate(who), path, request)

            for other in ("viewer", "job-vision", "agent-h0"):
                for method, request in calls:
                    assert await status(other, method.path, request) is grpc.StatusCode.PERMISSION_DENIED
            interventions = controller.core.planner.interventions
            assert (interventions.pause, interventions.pins) == (None, ())
            assert await status("operator", PIN.path, pin) is OK
            assert await status("viewer", LIST_PINS.method.path) is OK
            [made] = interventions.pins
            assert (made.target, made.level, made.by) == ("gpt", 7, "alice")
            assert store.interventions().pins == (made,)
            for method, request in calls[1:-1]:
                assert await status("operator", method.path, request) is OK
            assert await status("operator", UNPIN.path, unpin) is grpc.StatusCode.NOT_FOUND
            assert store.interventions().pause is None
        await store.trail.flush()
        rows = store.database.read(
            lambda connection: connection.execute(
                select(CALL).where(CALL.c.identity == "alice").order_by(CALL.c.id)
            ).all()
        )
        assert [(call.method, call.subject, call.outcome) for call in rows] == [
            ("Pin", "gpt --level 7 --for 60s", "done"),
            ("Unpin", "gpt", "done"),
            ("Pause", "maintenance", "done"),
            ("Release", "", "done"),
            ("Resume", "", "done"),
            ("Unpin", "gpt", "refused"),
        ]
        await store.close()

    run(scenario)


def test_calls_are_recorded_with_who_made_them(trial: Trial) -> None:
    recorded: list[tuple[str, str, str, str]] = []

    def record(caller: Identity, method: str, subject: str, outcome: str, _: str) -> None:
        recorded.append((str(caller), method, subject, outcome))

    async def scenario() -> None:
        async with (
            secured(tls=trial.tls) as controller,
            connected(controller, trial.certificate("job-vision")) as vision,
            connected(controller, trial.certificate("job-speech")) as speech,
        ):
            controller.core.calls.record = record
            await vision.register_job(GPT)
            await vision.heartbeat("gpt")
            with pytest.raises(RefusedError):
                await speech.deregister("gpt")
            for client in ("operator", "viewer"):
                await status_of(controller, trial.certificate(client), LIST_JOBS.method.path)
            with pytest.raises(RefusedError):
                await speech.register_job(Job("odd", ("h0", "nowhere"), 8))

    run(scenario)
    assert recorded == [
        ("job 'vision' of tenant 'vision'", "RegisterJob", "gpt", "done"),
        ("job 'speech' of tenant 'speech'", "DeregisterJob", "gpt", "refused"),
        ("operator/viewer 'alice'", "ListJobs", "", "done"),
        ("job 'speech' of tenant 'speech'", "RegisterJob", "odd", "refused"),
    ]


def test_the_audit_trail_has_calls_with_their_identities(trial: Trial, tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store.open(str(tmp_path / "controller.db"), WallClock())
        async with (
            secured(store=store, tls=trial.tls) as controller,
            connected(controller, trial.certificate("job-vision")) as vision,
        ):
            await vision.register_job(GPT)
            assert [job.tenant for job in controller.core.registry.jobs] == ["vision"]
            await store.trail.flush()
        found = store.database.read(lambda connection: connection.execute(select(CALL)).mappings().all())
        assert [{name: row[name] for name in ("identity", "tenant", "role", "method", "subject")} for row in found] == [
            {"identity": "vision", "tenant": "vision", "role": "job", "method": "RegisterJob", "subject": "gpt"}
        ]
        await store.close()
        # The tenant outlives the controller.
        store = Store.open(str(tmp_path / "controller.db"), WallClock())
        async with (
            secured(store=store, tls=trial.tls) as controller,
            connected(controller, trial.certificate("job-speech")) as speech,
        ):
            assert [job.tenant for job in controller.core.registry.jobs] == ["vision"]
            with pytest.raises(RefusedError, match="belongs to another tenant"):
                await speech.heartbeat("gpt")
        await store.close()

    run(scenario)
