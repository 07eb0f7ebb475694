"""A Plan is applied once, or only rehearsed, and all rules are released, by nobody's controller on live switches."""

import asyncio
import hashlib
import json
import os
import pwd
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import finsy as fy
import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.client import Operations
from controller.api.operations.methods import LIST_CONTROLLERS, LIST_SWITCHES
from controller.clock import WallClock
from controller.config import ControllerConfig
from controller.errors import StoreError
from controller.planning.interventions import Pause
from controller.process.one_shot import NothingAppliedError, apply_once, release_once
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.southbound.p4runtime.entries import key_of
from controller.southbound.p4runtime.entry_words import entry_words, kind_words
from controller.southbound.visit import SwitchHeldError, Visit
from controller.store.store import Store
from emulator.compiler.program import compile_program
from emulator.entries import ActionCall, NotFoundError
from emulator.switch import EmulatedSwitch
from p4src import P4INFO, PROGRAM
from policies.job import Profile
from tests.compiled import compile_loops
from tests.integration.fabrics import ServedFabric, configuration, controlled, served_fabric
from tests.patience import PATIENCE_S
from topologies.specification import ClosSpecification
from trainyard.cli.application import application

CLOS = ClosSpecification(kind="clos", tors=2, aggs=2, hosts_per_tor=3, host_link_gbps=10, uplink_gbps=10)
LEASE_S = 1e6
JOBS = {"gpt": ("h0", "h3", "h1"), "bert": ("h1", "h4", "h2"), "resnet": ("h2", "h5", "h0")}


async def stored(database: Path, *, is_measured: bool = False) -> str:
    """Jobs, in a database whose controller has ended; none that a controller would begin to measure."""
    store = Store.open(str(database), WallClock())
    registry, now_s = store.registry(CLOS.build(), LEASE_S), store._clock.now_s()
    for number, (name, hosts) in enumerate(JOBS.items(), 1):
        registry.register_job(JobRequest(name, hosts, 8, Profile(0.1, 0.5, float(number))), now_s, "token")
        ring = [NicReference(host, 0) for host in hosts]
        flows = tuple(FlowRequest(*ends, 10**9, 0.0) for ends in zip(ring, ring[1:] + ring[:1], strict=True))
        registry.register_flow_groups(name, [FlowGroupRequest("ring", flows)])
    if is_measured:
        registry.register_job(JobRequest("plain", ("h3", "h4"), 8, None), now_s, "token")
    await registry.commit()
    await store.close()
    return str(database)


def config_of(served: ServedFabric, database: str | None, **options: Any) -> ControllerConfig:
    return configuration(served, LEASE_S, CLOS, database=database, **options)


def entries(served: ServedFabric) -> dict[str, Any]:
    """Return all that the switches hold."""
    tables = compile_program(PROGRAM.read_text()).resources.tables
    return {
        switch.name: {
            table: (sorted(map(repr, switch.entries(table))), repr(default_of(switch, table))) for table in tables
        }
        for switch in served.emulated.switches.values()
    }


def default_of(switch: EmulatedSwitch, table: str) -> ActionCall | None:
    """Return the default action of a table; None if it has none."""
    try:
        return switch.default(table)
    except NotFoundError:
        return None


def changes(visits: Sequence[Visit]) -> dict[str, Counter[str]]:
    """Return what is written to each switch, in words."""
    return {
        visit.name: Counter(
            f"{each.kind.name} {kind_words(each.entity)} {entry_words(each.entity)}" for each in visit.updates
        )
        for visit in visits
    }


def _digest(database: str) -> str:
    with closing(sqlite3.connect(database)) as connection:
        return hashlib.sha256("\n".join(connection.iterdump()).encode()).hexdigest()


async def until_reached(address: str, served: ServedFabric) -> None:
    """Wait until all switches hold what a controller has written."""
    with Operations(address) as operations:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                switches = await asyncio.to_thread(operations.list, LIST_SWITCHES)
                if [each.condition for each in switches] == [wire.CAUGHT_UP] * len(served.emulated.switches):
                    return
                await asyncio.sleep(0.2)


async def until_caught_up(address: str, served: ServedFabric) -> None:
    """Wait until a controller has planned, and all switches hold what it has written."""
    with Operations(address) as operations:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                [state] = await asyncio.to_thread(operations.list, LIST_CONTROLLERS)
                if state.plan_number:
                    break
                await asyncio.sleep(0.2)
    await until_reached(address, served)


@pytest.mark.parametrize("policy", ["crux", "trainyard"])
def test_a_dry_run_is_what_apply_writes_and_what_a_controller_writes_at_its_start(tmp_path: Path, policy: str) -> None:
    compile_loops(policy)

    async def test() -> None:
        database = await stored(tmp_path / "t.db")
        copy = str(shutil.copy(database, tmp_path / "copy.db"))
        async with served_fabric(CLOS) as served, served_fabric(CLOS) as other:
            config, before = config_of(served, database, policy=policy), _digest(database)
            rehearsed = await apply_once(config, is_dry_run=True)
            assert _digest(database) == before
            assert not any(list(switch.entries("ingress.routing")) for switch in served.emulated.switches.values())
            assert all(visit.loads_program and not visit.problem for visit in rehearsed)
            applied = await apply_once(config, is_dry_run=False)
            assert not any(visit.problem for visit in applied)
            assert changes(applied) == changes(rehearsed)
            tables = Counter(kind_words(update.entity) for visit in applied for update in visit.updates)
            assert tables["flow"] > 0
            with closing(sqlite3.connect(database)) as connection:
                audited = connection.execute(
                    "SELECT switch, SUM(inserted), SUM(modified), SUM(deleted) FROM switch_write"
                    " WHERE outcome = 'acknowledged' GROUP BY switch"
                ).fetchall()
                plans = connection.execute("SELECT number FROM plan").fetchall()
            counts = {visit.name: Counter(update.kind.name for update in visit.updates) for visit in rehearsed}
            assert {row[0]: row[1:] for row in audited} == {
                name: (count["INSERT"], count["MODIFY"], count["DELETE"]) for name, count in counts.items()
            }
            assert plans == [(1,)]
            async with controlled(other, LEASE_S, topology=CLOS, database=copy, policy=policy) as process:
                await until_caught_up(process.address, other)
                assert entries(other) == entries(served)
            for is_dry_run in (True, False, True):
                again = await apply_once(config, is_dry_run=is_dry_run)
                assert not any(visit.problem or visit.updates or visit.loads_program for visit in again)

    asyncio.run(test())


def test_a_dry_run_disturbs_no_controller_and_apply_is_refused_beside_one(tmp_path: Path) -> None:
    async def test() -> None:
        database = await stored(tmp_path / "t.db")
        async with served_fabric(CLOS) as served:
            config, alone = config_of(served, database), config_of(served, None)
            async with controlled(served, LEASE_S, topology=CLOS, database=database) as process:
                await until_caught_up(process.address, served)
                before = entries(served)
                rehearsed = await apply_once(config, is_dry_run=True)
                assert not any(visit.problem or visit.updates for visit in rehearsed)
                assert all(visit.is_held for visit in rehearsed)
                without_jobs = await apply_once(alone, is_dry_run=True)
                deleted = {
                    (update.kind.name, kind_words(update.entity)) for visit in without_jobs for update in visit.updates
                }
                assert deleted == {("DELETE", "flow")}
                for refused in (apply_once(alone, is_dry_run=False), release_once(alone)):
                    with pytest.raises(SwitchHeldError, match="a controller has t0, t1, a0, a1; nothing was written"):
                        await refused
                for refused in (apply_once(config, is_dry_run=False), release_once(config)):
                    with pytest.raises(StoreError, match="runs on it"):
                        await refused
                assert entries(served) == before
                with Operations(process.address) as operations:
                    switches = await asyncio.to_thread(operations.list, LIST_SWITCHES)
                assert {each.condition for each in switches} == {wire.CAUGHT_UP}
                assert {each.drifted for each in switches} == {0}

    asyncio.run(test())


def test_release_leaves_base_routing_and_what_is_of_operators(tmp_path: Path) -> None:
    async def test() -> None:
        database = await stored(tmp_path / "t.db", is_measured=True)
        async with served_fabric(CLOS) as served:
            config = config_of(served, database)
            await apply_once(config, is_dry_run=False)
            await _write_as_operator(served)
            before = entries(served)
            rehearsed_again = await apply_once(config, is_dry_run=True)
            assert not any(visit.updates for visit in rehearsed_again)
            released = await release_once(config)
            assert not any(visit.problem for visit in released)
            assert _audited(database) == {each.name: len(each.updates) for each in released if each.updates}
            after = entries(served)
            ours = {"ingress.flow", "ingress.level"}
            for switch, tables in after.items():
                for table, held in tables.items():
                    if table not in {*ours, "ingress.job"}:
                        assert held == before[switch][table], (switch, table)
                assert all(tables[table][0] == [] for table in ours)
            assert len(before["t1"]["ingress.job"][0]) == 3
            [left] = after["t1"]["ingress.job"][0]
            assert left in before["t1"]["ingress.job"][0]
            assert "priority=7" in left
            again = await release_once(config)
            assert not any(visit.problem or visit.updates for visit in again)
            # The next controller, or apply, writes all of it again.
            await apply_once(config, is_dry_run=False)
            assert entries(served) == before

    asyncio.run(test())


def _audited(database: str) -> dict[str, int]:
    """Return how many entries of each switch the newest call of the audit trail, a release, has deleted."""
    with closing(sqlite3.connect(database)) as connection:
        calls = connection.execute("SELECT identity, role, method, outcome, problem FROM call ORDER BY id").fetchall()
        user = pwd.getpwuid(os.geteuid()).pw_name
        assert calls == [(user, "without a controller", method, "done", "") for method in ("Apply", "Release")]
        writes = (
            "SELECT switch, SUM(deleted) FROM switch_write WHERE outcome = 'acknowledged' AND plan = 0 GROUP BY switch"
        )
        return dict(connection.execute(writes).fetchall())


async def _write_as_operator(served: ServedFabric) -> None:
    """Write an entry of a job with another priority, and one of a table that no controller has."""
    options = fy.SwitchOptions(p4info=P4INFO, p4blob=PROGRAM, device_id=2, initial_election_id=(1 << 64) + 1)
    own = fy.P4TableEntry(
        "ingress.job",
        match=fy.Match(source_address=(0x0A000001, 0xFFFFFFFF), destination_address=(0x0A000002, 0xFFFFFFFF)),
        action=fy.Action("ingress.prioritise_job", level=1),
        priority=7,
    )
    port = fy.P4TableEntry("ingress.port", match=fy.Match(ingress_port=1), action=fy.Action("ingress.distrust"))
    async with fy.Switch("t1", served.address, options) as switch:
        await switch.write([+own, +port])


def test_a_switch_that_is_away_has_a_reason_and_the_others_get_theirs(tmp_path: Path) -> None:
    async def test() -> None:
        database = await stored(tmp_path / "t.db")
        async with served_fabric(CLOS) as served:
            addresses = tuple(
                each.model_copy(update={"address": "127.0.0.1:1"}) if each.name == "a1" else each
                for each in served.addresses()
            )
            document = config_of(served, database).model_dump() | {"switches": addresses}
            config = ControllerConfig.model_validate(document)
            for is_dry_run in (True, False):
                visits = {visit.name: visit for visit in await apply_once(config, is_dry_run=is_dry_run)}
                assert visits["a1"].problem.startswith("unreachable: ")
                assert not visits["a1"].updates
                assert all(visits[name].updates and not visits[name].problem for name in ("t0", "t1", "a0"))

    asyncio.run(test())


def test_the_commands_say_entry_by_entry_what_is_written(tmp_path: Path) -> None:
    def call(*arguments: str) -> Result:
        return CliRunner().invoke(application, arguments)

    async def test() -> None:
        database = await stored(tmp_path / "t.db")
        async with served_fabric(CLOS) as served:
            file = tmp_path / "controller.yaml"
            file.write_text(yaml.safe_dump(config_of(served, database).model_dump(mode="json")))
            dry_run = "apply", "--config", str(file), "--dry-run"
            answered = await asyncio.to_thread(call, *dry_run, "-o", "json")
            assert (answered.exit_code, answered.stderr) == (0, "")
            document = json.loads(answered.stdout)
            assert document["is_dry_run"]
            assert [each["name"] for each in document["switches"]] == ["t0", "t1", "a0", "a1"]
            flows = [
                entry["entry"]
                for each in document["switches"]
                for entry in each["entries"]
                if (entry["change"], entry["kind"]) == ("inserted", "flow")
            ]
            assert flows
            assert all(re.fullmatch(r"udp [\d.]+:\d+ > [\d.]+:\d+: (steer|prioritise).*", flow) for flow in flows)
            assert document == json.loads((await asyncio.to_thread(call, *dry_run, "-o", "json")).stdout)
            applied = await asyncio.to_thread(call, "apply", "--config", str(file))
            assert applied.exit_code == 0, applied.stderr
            assert "4 switches: what was written" in applied.stdout
            assert "4 switches: inserted 112 level\n" in applied.stdout
            assert "dscp" not in applied.stdout
            num_entries = sum(len(each["entries"]) for each in document["switches"])
            others = num_entries - len(flows)
            last = (
                f"{num_entries} entries written (flow: {len(flows)}, job: 0, other: {others}); --all lists every entry"
            )
            assert applied.stdout.splitlines()[-1] == last
            assert all(f"inserted flow {flow}" in applied.stdout for flow in flows)
            again = await asyncio.to_thread(call, *dry_run)
            assert "4 switches: what would be written" in again.stdout
            assert "inserted flow" not in again.stdout
            assert again.stdout.splitlines()[-1] == "0 entries would be written"
            released = await asyncio.to_thread(call, "release", "--config", str(file))
            assert released.exit_code == 0, released.stderr
            assert re.findall(r"switch (\S+), \d+ entries deleted", released.stdout) == ["t0", "t1", "a0", "a1"]
            every = await asyncio.to_thread(call, *dry_run, "--all")
            assert every.stdout.count(": inserted level dscp ") == 112
            async with controlled(served, LEASE_S, topology=CLOS) as process:
                await until_reached(process.address, served)
                file.write_text(yaml.safe_dump(config_of(served, None).model_dump(mode="json")))
                for command in ("apply", "release"):
                    refused = await asyncio.to_thread(call, command, "--config", str(file))
                    assert refused.exit_code == 1
                    assert refused.stderr == "a controller has t0, t1, a0, a1; nothing was written\n"

    asyncio.run(test())


def test_nothing_is_applied_while_planning_is_paused(tmp_path: Path) -> None:
    async def test() -> None:
        database = await stored(tmp_path / "t.db")
        store = Store.open(database, WallClock())
        await store.keep_pause(Pause(1.0, "alice", "maintenance"))
        await store.close()
        async with served_fabric(CLOS) as served:
            for is_dry_run in (True, False):
                with pytest.raises(NothingAppliedError, match="planning is paused by alice"):
                    await apply_once(config_of(served, database), is_dry_run=is_dry_run)
            assert not any(list(switch.entries("ingress.routing")) for switch in served.emulated.switches.values())

    asyncio.run(test())


def test_without_a_database_there_are_no_jobs(tmp_path: Path) -> None:
    async def test() -> None:
        async with served_fabric(CLOS) as served:
            visits = await apply_once(config_of(served, str(tmp_path / "none.db")), is_dry_run=True)
            assert not (tmp_path / "none.db").exists()
            kinds = {kind_words(update.entity) for visit in visits for update in visit.updates}
            assert kinds == {"node", "node_id", "ecn", "level", "next_hop", "member", "group", "routing"}
            keys = [key_of(update.entity) for update in visits[0].updates]
            assert len(keys) == len(set(keys))

    asyncio.run(test())
