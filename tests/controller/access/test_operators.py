"""Operators withdraw jobs, and the audit trail has who called what."""

from pathlib import Path

import grpc
import pytest
from sqlalchemy import select

from controller.access.identity import Identity
from controller.api.operations import operations_pb2
from controller.api.operations.methods import LIST_JOBS, WITHDRAW
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
