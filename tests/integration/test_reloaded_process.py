"""A controller process reads its file again, on SIGHUP and when an operator asks, while hosts are connected to it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.access.identity import Role
from controller.access.tokens import new_token, token_entry
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.client import Operations, OperationsError
from controller.api.operations.methods import LIST_CONTROLLERS, LIST_JOBS
from controller.store.audit_entries import CallEntry, newest_entries
from controller.store.database import Database
from controller.switch_addresses import SwitchAddress
from emulator.fabric import EmulatedFabric
from hostlib.client import Client
from hostlib.types import Flow, FlowGroup, Job, Nic, Profile
from tests.integration.reloading import part, served, whole
from tests.patience import PATIENCE_S, until
from topologies.specification import ClosSpecification
from trainyard.cli.output import PrintableConsole
from trainyard.cli.show_tables import controllers

CLOS = ClosSpecification(
    kind="clos", tors=2, aggs=2, hosts_per_tor=2, gpus_per_host=2, host_link_gbps=10, uplink_gbps=10
)
WHOLE = whole(CLOS)


class Process:
    """A controller process with a file of its own; ``log`` has what it has printed, line by line."""

    def __init__(self, path: Path, document: dict[str, Any]) -> None:
        self.path = path
        self.document = document
        self.log: list[str] = []
        self.address = ""
        self._process: asyncio.subprocess.Process | None = None

    def write(self, **keys: Any) -> None:
        """Write the file with other values of these keys."""
        self.document |= keys
        self.path.write_text(yaml.safe_dump(self.document))

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        os.kill(self._process.pid, number)

    async def stop(self) -> None:
        """End it as an operator does: it writes what waits for the database."""
        assert self._process is not None
        self._process.terminate()
        await self._process.wait()

    async def logged(self, words: str) -> str:
        """Wait for a line with these words, and return it."""
        await until(lambda: any(words in line for line in self.log))
        return next(line for line in self.log if words in line)

    async def reload(self) -> wire.ReloadAnswer:
        """Ask for a reload as an operator does."""
        with Operations(self.address) as operations:
            return await asyncio.to_thread(operations.reload)

    async def state(self) -> wire.ControllerState:
        """What it says of itself, once it answers."""
        with Operations(self.address) as operations:
            (state,) = await asyncio.to_thread(operations.list, LIST_CONTROLLERS)
        return state

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Process"]:
        """Run it while the context lasts."""
        self.write()
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "controller", "--config", str(self.path)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        reading = asyncio.create_task(self._read(process))
        try:
            self.address = (await self.logged("listening on ")).split()[-1]
            yield self
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            reading.cancel()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            self.log.append(line.decode().rstrip())


def document(addresses: Sequence[SwitchAddress], topology: dict[str, Any], **options: Any) -> dict[str, Any]:
    """A configuration with the switches of its topology."""
    names = {switch["name"] for switch in topology["switches"]}
    switches = [address.model_dump(mode="json") for address in addresses if address.name in names]
    return {"listen": "127.0.0.1:0", "topology": topology, "switches": switches, "discovery": False, **options}


async def registered(client: Client, job: str, source: str, destination: str) -> None:
    client.register_job(Job(job, (source, destination), 2, Profile(1.0, 0.5, 1.0)))
    client.register_flow_groups(job, [FlowGroup("gradients", (Flow(Nic(source), Nic(destination), 10**9),))])
    assert await client.acknowledged(job, PATIENCE_S)


def test_cables_and_hosts_come_and_go_while_hosts_are_connected(tmp_path: Path) -> None:
    async def test() -> None:
        topology = part(WHOLE, hosts=["h3"], cables=[("t0", "a1")])
        async with served(CLOS.build()) as (emulated, addresses):
            process = Process(tmp_path / "controller.yaml", document(addresses, topology))
            async with process.running(), Client(process.address) as client:
                await registered(client, "gpt", "h0", "h2")
                process.write(topology=WHOLE)
                answer = await process.reload()
                assert list(answer.changes) == [
                    "topology: hosts added: h3",
                    "topology: cables added: h3:eth0 - t1:2, t0:4 - a1:1",
                ]
                # The host reconnects by itself, and its job is still the one that it was.
                await registered(client, "bert", "h1", "h3")
                assert await client.acknowledged("gpt", PATIENCE_S)
                with Operations(process.address) as operations:
                    jobs = await asyncio.to_thread(operations.list, LIST_JOBS)
                assert {job.name for job in jobs} == {"gpt", "bert"}
                await until(lambda: len(list(emulated.switches["t0"].entries("ingress.next_hop"))) == 4)
                # The same file again changes nothing.
                assert list((await process.reload()).changes) == []
                process.write(topology=topology)
                answer = await process.reload()
                assert any("job 'bert' would not fit" in problem for problem in answer.problems)
                client.deregister("bert")
                await until(lambda: "bert" not in {job.name for job in _jobs(process.address)})
                answer = await process.reload()
                assert list(answer.problems) == []
                assert answer.changes[0] == "topology: hosts removed: h3"
                await until(lambda: len(list(emulated.switches["t0"].entries("ingress.next_hop"))) == 3)
                assert await client.acknowledged("gpt", PATIENCE_S)

    asyncio.run(test())


def _jobs(address: str) -> list[wire.JobState]:
    with Operations(address) as operations:
        return operations.list(LIST_JOBS)


def _recabled(old: str, new: str) -> dict[str, Any]:
    """The whole fabric with a cable end at another port."""
    cables = [{**cable, "ends": [new if end == old else end for end in cable["ends"]]} for cable in WHOLE["cables"]]
    return {**WHOLE, "cables": cables}


@pytest.mark.parametrize(
    ("gone", "typo"),
    [
        ({"hosts": ["h3"]}, ("t1:2", "t1:19")),
        ({"cables": [("t0", "a1")]}, ("t0:4", "t0:19")),
    ],
)
def test_a_port_that_a_switch_does_not_have_is_refused_in_its_words(
    tmp_path: Path, gone: dict[str, Any], typo: tuple[str, str]
) -> None:
    async def test() -> None:
        topology = part(WHOLE, **gone)
        async with served(CLOS.build()) as (emulated, addresses):
            process = Process(tmp_path / "controller.yaml", document(addresses, topology))
            async with process.running(), Client(process.address) as client:
                await registered(client, "gpt", "h0", "h2")
                await until(lambda: _places(process.address)["gpt"][1] > 0)
                places = _places(process.address)
                await until(lambda: all(_next_hops(emulated).values()))
                held = _next_hops(emulated)
                process.write(topology=_recabled(*typo))
                switch = typo[1].partition(":")[0]
                answer = await process.reload()
                assert list(answer.changes) == []
                (problem,) = answer.problems
                assert f"{process.path}: topology: switch '{switch}': " in problem
                assert f"switch {switch} has no port 19 to watch" in problem
                assert _next_hops(emulated) == held
                # The Plan in force is the same one.
                assert _places(process.address) == places
                assert (await process.state()).plan_number > 0
                process.write(topology=WHOLE)
                assert list((await process.reload()).problems) == []
                assert await client.acknowledged("gpt", PATIENCE_S)

    asyncio.run(test())


def _places(address: str) -> dict[str, tuple[int, int]]:
    """The rank and the level of every job."""
    return {job.name: (job.rank, job.level) for job in _jobs(address)}


def _next_hops(emulated: EmulatedFabric) -> dict[str, list[Any]]:
    return {name: list(switch.entries("ingress.next_hop")) for name, switch in emulated.switches.items()}


def test_show_controller_says_that_a_reload_goes_on_and_what_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def test() -> None:
        async with served(CLOS.build()) as (_, addresses):
            small = part(WHOLE, switches=["a1"])
            process = Process(tmp_path / "controller.yaml", document(addresses, small))
            async with process.running():
                assert not (await process.state()).HasField("reload")
                away = [
                    SwitchAddress(name=each.name, address="127.0.0.1:1", device_id=each.device_id)
                    if each.name == "a1"
                    else each
                    for each in addresses
                ]
                process.write(**document(away, WHOLE))
                reloading = asyncio.create_task(process.reload())
                states = [await process.state()]
                while not states[-1].reload.step.startswith("waiting for the Plan"):
                    assert not reloading.done(), reloading.result()
                    with suppress(OperationsError):  # it goes over
                        states.append(await process.state())
                PrintableConsole(width=160).print(controllers(states[-1:]))
                assert "waiting for the Plan that follows to be in force" in capsys.readouterr().out
            await asyncio.gather(reloading, return_exceptions=True)  # the process has ended in the middle

    asyncio.run(test())


def test_sighup_does_the_same_and_says_so_in_the_log(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(CLOS.build()) as (_, addresses):
            process = Process(tmp_path / "controller.yaml", document(addresses, WHOLE))
            async with process.running():
                process.write(policy="ecmp", num_levels=4)
                process.send(signal.SIGHUP)
                await process.logged("policy: crux, now ecmp")
                await process.logged("num_levels: 8, now 4")
                assert (await process.state()).policy == "ecmp"
                process.path.write_text("topology: {kind: clos, tors: 2")
                process.send(signal.SIGHUP)
                line = await process.logged("not reloaded: ")
                assert str(process.path) in line
                process.write(num_levels=9, listen="nowhere")
                process.send(signal.SIGHUP)
                await process.logged("num_levels: ")
                await process.logged("listen: ")
                process.write(num_levels=3, listen="127.0.0.1:1", election_id=7, hash_seed=2)
                answer = await process.reload()
                assert list(answer.problems) == [
                    f"{process.path}: {key}: cannot change while the controller runs; restart it"
                    for key in ("listen", "hash_seed", "election_id")
                ]
                assert (await process.state()).policy == "ecmp"
                process.path.unlink()
                answer = await process.reload()
                assert [str(process.path) in problem for problem in answer.problems] == [True]
                process.document["listen"] = "127.0.0.1:0"
                del process.document["election_id"], process.document["hash_seed"]
                process.write()
                assert list((await process.reload()).changes) == ["num_levels: 4, now 3"]

    asyncio.run(test())


def test_reloads_that_come_together_are_carried_out_one_after_the_other(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(CLOS.build()) as (_, addresses):
            process = Process(tmp_path / "controller.yaml", document(addresses, WHOLE))
            async with process.running(), Client(process.address) as client:
                await registered(client, "gpt", "h0", "h2")
                process.write(topology=part(WHOLE, hosts=["h3"]))
                process.send(signal.SIGHUP)
                answers = await asyncio.gather(*(process.reload() for _ in range(3)))
                assert [list(answer.problems) for answer in answers] == [[]] * 3
                # One of the four has found something to do, which was told once.
                told = [line for line in process.log if "hosts removed: h3" in line]
                await process.logged("hosts removed: h3")
                assert len(told) <= 1
                assert sum(bool(answer.changes) for answer in answers) <= 1
                assert await client.acknowledged("gpt", PATIENCE_S)

    asyncio.run(test())


def test_a_standby_reloads_too_and_leads_with_the_new_file(tmp_path: Path) -> None:
    async def test() -> None:
        database = str(tmp_path / "controller.db")
        small = part(WHOLE, cables=[("t0", "a1")])
        async with served(CLOS.build()) as (emulated, addresses):
            one, two = (
                Process(
                    tmp_path / f"{name}.yaml",
                    document(addresses, small, database=database, leadership={"name": name, "lease_s": 2.0}),
                )
                for name in ("one", "two")
            )
            async with one.running(), two.running(), Client([one.address, two.address]) as client:
                await registered(client, "gpt", "h0", "h2")
                await until(lambda: any("leading, term" in line for line in (*one.log, *two.log)))
                leader, other = (one, two) if any("leading" in line for line in one.log) else (two, one)
                entries = {name: list(switch.entries("ingress.next_hop")) for name, switch in emulated.switches.items()}
                other.write(topology=WHOLE)
                answer = await other.reload()
                assert list(answer.changes) == [
                    "topology: cables added: t0:4 - a1:1",
                    "this controller stands by: it goes by this file once it leads",
                ]
                after = {name: list(switch.entries("ingress.next_hop")) for name, switch in emulated.switches.items()}
                assert after == entries
                leader.write(topology=WHOLE)
                assert list((await leader.reload()).changes) == ["topology: cables added: t0:4 - a1:1"]
                await until(lambda: len(list(emulated.switches["t0"].entries("ingress.next_hop"))) == 4)
                assert await client.acknowledged("gpt", PATIENCE_S)
                leader.send(signal.SIGTERM)
                await other.logged("leading, term")
                assert await client.acknowledged("gpt", PATIENCE_S)
                assert (await other.state()).term > 1
                assert len(list(emulated.switches["t0"].entries("ingress.next_hop"))) == 4
                # What leads now reloads as any leader does.
                other.write(topology=small)
                assert list((await other.reload()).changes) == ["topology: cables removed: t0:4 - a1:1"]
                assert await client.acknowledged("gpt", PATIENCE_S)

    asyncio.run(test())


def test_operators_reload_by_the_command_viewers_do_not_and_the_trail_has_who_did(tmp_path: Path) -> None:
    async def test() -> None:
        tokens = {role: new_token() for role in (Role.OPERATOR, Role.VIEWER)}
        entries = [token_entry(token, f"the-{role}", role, "", None) for role, token in tokens.items()]
        (tmp_path / "tokens.yaml").write_text("".join(f"- {entry}\n" for entry in entries))
        for role, token in tokens.items():
            (tmp_path / role).write_text(token)
            (tmp_path / role).chmod(0o600)
        database = str(tmp_path / "controller.db")
        async with served(CLOS.build()) as (_, addresses):
            options = {"tokens": str(tmp_path / "tokens.yaml"), "database": database}
            process = Process(tmp_path / "controller.yaml", document(addresses, WHOLE, **options))

            async def ended(role: Role, *further: str) -> tuple[int, str, str]:
                command = ("reload", "--controller", process.address, "--token-file", str(tmp_path / role), *further)
                running = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", "trainyard", *command),
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                output, errors = await running.communicate()
                assert running.returncode is not None
                return running.returncode, output.decode(), errors.decode()

            async with process.running():
                process.write(policy="ecmp")
                status, output, errors = await ended(Role.VIEWER)
                assert (status, output) == (1, "")
                assert "Reload: is for operator" in errors
                assert await ended(Role.OPERATOR) == (0, "policy: crux, now ecmp\n", "")
                assert await ended(Role.OPERATOR) == (0, "nothing has changed\n", "")
                process.write(policy="crux", hash_seed=3)
                status, output, errors = await ended(Role.OPERATOR)
                assert (status, output) == (2, "")
                refusal = f"{process.path}: hash_seed: cannot change while the controller runs; restart it\n"
                assert errors == refusal
                # One that does not answer keeps nobody from reading what the one before has said.
                status, output, errors = await ended(Role.OPERATOR, "--controller", "127.0.0.1:1")
                assert (status, output) == (1, "")
                assert errors.startswith(f"{process.address}: {refusal}no controller answers at 127.0.0.1:1: ")
                await process.stop()
        opened = Database.open(database)
        try:
            entries_read = opened.read(partial(newest_entries, 20))
        finally:
            opened.close()
        calls = [entry for entry in entries_read if isinstance(entry, CallEntry) and entry.method == "Reload"]
        assert {call.identity for call in calls} == {"the-operator"}
        assert sorted(call.outcome for call in calls) == ["done", "done", "refused", "refused"]

    asyncio.run(test())
