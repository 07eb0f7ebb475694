"""Probes of hosts through the service: which flows they follow, and who may report."""

from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from controller.southbound.recording import RecordingSouthbound
from controller.telemetry.report_checks import RejectReason
from controller.telemetry.telemetry import Telemetry
from hostlib.errors import RefusalReason, RefusedError
from hostlib.telemetry.parsing import parse_probe
from hostlib.telemetry.probe_agent import ProbeExchange
from hostlib.telemetry.probes import Mark, Probe, probe_packet
from hostlib.telemetry.receiver import ProbeReport
from hostlib.types import FiveTuple
from tests.controller.api.serving import GPT, RING, Run
from tests.driven import DrivenConnection


def exchange(host: str, number: int = 0) -> ProbeExchange:
    return ProbeExchange(host, 1, number, clock_ns=0, reports=(), dropped={}, targets_version=0)


def test_a_host_probes_the_flows_of_jobs(run: Run) -> None:
    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        assert (await client.exchange_probes(exchange("h0"))).targets == ()
        await client.register_job(GPT)
        assignments = await client.register_flow_groups("gpt", [RING])
        await client.settle(0.0)
        [target] = (await client.exchange_probes(exchange("h0", 1))).targets
        there = assignments["ring"][0]
        assert (target.pair.source_address, target.pair.destination_address) == (
            there.source_address,
            there.destination_address,
        )
        assert target.source_ports == (there.source_port,)
        assert (await client.exchange_probes(exchange("h1"))).targets == ()
        await client.deregister("gpt")
        await client.settle(0.0)
        assert (await client.exchange_probes(exchange("h0", 2))).targets == ()

    run(scenario)


def test_only_the_agent_of_a_host_reports_for_it(run: Run, telemetry: Telemetry) -> None:
    async def scenario(client: DrivenConnection, _: RecordingSouthbound) -> None:
        await client.exchange_probes(exchange("h0"))
        client.owner_token = "another"
        flow = FiveTuple(IPv4Address("10.0.2.1"), IPv4Address("10.0.0.1"), 17, 50_000, 4791)
        probe = parse_probe(probe_packet(Probe(flow, 0, Mark(1, 0, 0, 0))))
        with pytest.raises(RefusedError, match="owner_token: host 'h0'") as refused:
            await client.exchange_probes(replace(exchange("h0", 1), reports=(ProbeReport(probe, 0),)))
        assert refused.value.reason is RefusalReason.NOT_OWNER
        assert telemetry.rejected == {RejectReason.NOT_OWNER: 1}
        with pytest.raises(RefusedError, match="host: unknown host 'h99'"):
            await client.exchange_probes(exchange("h99"))
        client.owner_token = ""
        with pytest.raises(RefusedError, match="owner_token"):
            await client.exchange_probes(exchange("h1"))

    run(scenario)
