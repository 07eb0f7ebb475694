"""A controller behind TLS, as users meet it: the certificates command, the host library, show, explain, withdraw."""

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller.access.tls_files import ServerTls
from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from hostlib import BlockingClient, Credentials, RefusalReason
from tests.hostlib.served import GPT, RING
from tests.integration.fabrics import DUMBBELL
from tests.patience import PATIENCE_S
from trainyard.cli.application import application

pytestmark = pytest.mark.slow


def call(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(application, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout + result.stderr


def test_a_trial_with_certificates_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "credentials"
    status, said = call(
        "certificates", folder, "--operator", "alice", "--job", "vision", "--job", "speech", "--viewer", "grafana"
    )
    assert status == 0
    assert f"tls: {{certificate: {folder}/controller.pem" in said
    assert {path.name for path in folder.iterdir() if path.stat().st_mode & 0o077} == {
        path.name for path in folder.glob("*.pem")
    }

    def credentials(name: str) -> Credentials:
        return Credentials(ca=folder / "ca.pem", certificate=folder / f"{name}.pem", key=folder / f"{name}.key")

    config = ControllerConfig(
        listen="127.0.0.1:0",
        tls=ServerTls(certificate=folder / "controller.pem", key=folder / "controller.key", ca=folder / "ca.pem"),
        topology=DUMBBELL,
        switches=tuple(SwitchAddress(name=name, address="127.0.0.1:1") for name in ("t0", "t1")),
        database=str(tmp_path / "controller.db"),
    )

    def use(address: str) -> None:
        asked = ("--controller", address)
        status, said = call("show", "jobs", *asked)
        assert (status, "it needs --ca" in said) == (1, True)
        status, said = call("show", "jobs", *asked, "--ca", folder / "ca.pem")
        assert (status, "may ask for a certificate: --certificate and --key" in said) == (1, True)
        with BlockingClient(address, credentials=credentials("job-vision")) as client:
            client.register_job(GPT)
            client.register_flow_groups("gpt", [RING])
            assert client.acknowledged("gpt", PATIENCE_S)
            monkeypatch.setenv("TRAINYARD_CA", str(folder / "ca.pem"))
            monkeypatch.setenv("TRAINYARD_CERTIFICATE", str(folder / "viewer-grafana.pem"))
            monkeypatch.setenv("TRAINYARD_KEY", str(folder / "viewer-grafana.key"))
            assert "gpt" in call("show", "jobs", *asked)[1]
            status, said = call("withdraw", "gpt", *asked)
            assert status == 1
            assert "Withdraw: is for operator, not for viewer 'grafana'" in said
            alice = ("--certificate", folder / "operator-alice.pem", "--key", folder / "operator-alice.key")
            status, said = call("withdraw", "gpt", *asked, *alice)
            assert (status, said) == (0, "withdrawn: job 'gpt' with 1 flow group\n")
            assert call("withdraw", "gpt", *asked, *alice)[0] == 2
            assert "PERMISSION_DENIED" in call("show", "controller", *asked)[1]
        with BlockingClient(address, credentials=credentials("viewer-grafana")) as client:
            client.register_job(GPT)
            assert not client.acknowledged("gpt", PATIENCE_S)
            refusal = client.refusal("gpt")
            assert refusal is not None
            assert refusal.reason is RefusalReason.NOT_OWNER

    async def scenario() -> None:
        async with ControllerProcess(config) as controller:
            await asyncio.to_thread(use, controller.address)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    status, said = call("audit", "--database", tmp_path / "controller.db", "--json")
    assert status == 0
    for what in ('"method": "RegisterJob"', '"identity": "alice"', '"outcome": "refused"'):
        assert what in said


def test_more_clients_leave_a_controllers_certificate_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "credentials"
    assert call("certificates", folder, "--address", "controller.example.org")[0] == 0
    before = (folder / "controller.pem").read_bytes()
    status, said = call("certificates", folder, "--operator", "bob")
    assert status == 0
    assert "wrote operator-bob to" in said
    assert (folder / "controller.pem").read_bytes() == before
    assert call("certificates", folder, "--address", "10.0.0.1")[0] == 0
    assert (folder / "controller.pem").read_bytes() != before
