"""Prometheus scrapes a controller that runs: metrics are what ``show`` says, and all panels and alerts have data."""

import asyncio
import json
import math
import re
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from controller.access.identity import Role
from controller.access.tls_files import ServerTls
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.client import Operations
from controller.api.operations.methods import (
    LIST_CANDIDATES,
    LIST_CONTROLLERS,
    LIST_DROPS,
    LIST_FLOWS,
    LIST_JOBS,
    LIST_LEVELS,
    LIST_LINKS,
    LIST_SWITCHES,
)
from controller.config import WebConfig
from emulator.fabric import PS_PER_S
from experiments.scenarios.controller_process import ControllerProcess
from experiments.scenarios.probing import Probing, agents_of
from hostlib.connection import Connection
from hostlib.errors import RefusedError
from hostlib.telemetry.receiver import DropReason
from tests.controller.access.secured import Trial
from tests.controller.web.serving import get
from tests.deploy.prometheus import FOLDER, Prometheus, promtool, running
from tests.hostlib.served import BERT, GPT, RING
from tests.integration.fabrics import DUMBBELL, ServedFabric, controlled, served_dumbbell
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

_DASHBOARDS = FOLDER.parent / "grafana" / "dashboards"
_CONDITIONS = {
    wire.AWAY: "away",
    wire.BEHIND: "behind",
    wire.CAUGHT_UP: "caught up",
    wire.REFUSES: "refuses",
    wire.LOST: "lost",
}
_SOURCES = {wire.TOLD: "told", wire.MEASURED: "measured", wire.BEING_MEASURED: "being measured"}
_TICK_S = 0.01

Found = Mapping[str, Mapping[frozenset[tuple[str, str]], float]]


def test_metrics_are_what_show_says_and_panels_and_alerts_have_data(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_scenario(tmp_path), 3 * PATIENCE_S))


async def _scenario(folder: Path) -> None:
    trial = Trial(folder)
    trial.authority.client("h2", Role.AGENT, "", days=1).write(folder, "agent-h2")
    token = trial.token("prometheus", Role.VIEWER)
    (folder / "prometheus.token").write_text(token)
    tls = ServerTls.model_validate(trial.tls)
    options: dict[str, Any] = {
        "tls": tls,
        "tokens": folder / "tokens.yaml",
        "web": WebConfig(listen="127.0.0.1:0"),
        "database": str(folder / "controller.db"),
        "policy": "crux",
        "lease_s": 3_600.0,  # nobody sends heartbeats
    }
    async with (
        served_dumbbell() as served,
        controlled(served, **options) as controller,
        Connection(controller.address, "t", PATIENCE_S, credentials=trial.certificate("job-vision")) as vision,
        Connection(controller.address, "t", PATIENCE_S, credentials=trial.certificate("job-speech")) as speech,
        _following(vision),
    ):
        scrape = _Scrape(controller.web, trial, token)
        with running(_config(controller.web, folder), folder) as prometheus:
            await vision.register_flow_groups("gpt", [RING])
            await vision.register_job(BERT)
            with pytest.raises(RefusedError):
                await speech.register_flow_groups("gpt", [RING])
            await _probe(served, controller, trial)
            await _is_what_show_says(controller.address, scrape, trial)
            assert _fires(prometheus, "TrainyardSwitchLost") == []
            served.emulated.set_switch("t1", up=False)
            await until_in_thread(lambda: _fires(prometheus, "TrainyardSwitchLost") != [])
            (alert, *_) = _fires(prometheus, "TrainyardSwitchLost")
            assert (alert["switch"], alert["condition"]) == ("t1", "away")
            await _is_what_show_says(controller.address, scrape, trial)
            for job in ("by-certificate", "by-token"):
                await _panels_have_data(prometheus, job)
            await _alerts_have_data(prometheus)


def _config(url: str, folder: Path) -> dict[str, Any]:
    """Both configurations that are delivered, for this controller: other files, and quicker."""
    jobs = []
    for file, name in (("prometheus.yml", "by-certificate"), ("prometheus-token.yml", "by-token")):
        config = yaml.safe_load((FOLDER / file).read_text())
        (job,) = config["scrape_configs"]
        text = json.dumps(job | {"job_name": f"trainyard-{name}"})
        for ours, theirs in (
            ("/credentials/viewer-prometheus", f"{folder}/viewer"),
            ("/credentials", str(folder)),
            ("controller:4791", url.removeprefix("https://")),
        ):
            text = text.replace(ours, theirs)
        jobs.append(json.loads(text))
    rules = yaml.safe_load((FOLDER / config["rule_files"][0]).read_text())
    for rule in rules["groups"][0]["rules"]:
        if "for" in rule:
            rule["for"] = "1s"
    (folder / "alerts.yml").write_text(yaml.safe_dump(rules))
    quick = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    return {"global": quick, "rule_files": [str(folder / "alerts.yml")], "scrape_configs": jobs}


@asynccontextmanager
async def _following(client: Connection) -> AsyncIterator[None]:
    """Have a job, and follow its directives while the context lasts."""

    async def follow() -> None:
        async for _ in client.directives("gpt"):
            pass

    await client.register_job(GPT)
    following = asyncio.create_task(follow())
    try:
        yield
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


async def _probe(served: ServedFabric, controller: ControllerProcess, trial: Trial) -> None:
    """Have the emulated hosts of the job probe each other until the controller has heard of some hundred probes."""
    hosts = [agent for agent in agents_of(served.emulated.fabric) if agent.host in ("h0", "h2")]
    probing, heard = Probing(served.emulated, hosts), 0
    async with AsyncExitStack() as stack:
        connections = {
            agent.host: await stack.enter_async_context(
                Connection(
                    controller.address, agent.host, PATIENCE_S, credentials=trial.certificate(f"agent-{agent.host}")
                )
            )
            for agent in hosts
        }
        while heard < 300:
            async with served.exclusive:
                served.emulated.run(served.emulated.now_ps + int(_TICK_S * PS_PER_S))
                probing.receive()
                exchanges = probing.exchanges()
            for agent, exchange in exchanges:
                told = replace(exchange, dropped={**exchange.dropped, DropReason.NOT_MINE: 3})
                answer = await connections[agent.host].exchange_probes(told)
                agent.answered(answer, served.emulated.now_ps / PS_PER_S)
                heard += len(exchange.reports)
            async with served.exclusive:
                probing.send()
            await asyncio.sleep(_TICK_S)


class _Scrape:
    """What the controller's metrics are, asked for by certificate and by token."""

    def __init__(self, url: str, trial: Trial, token: str) -> None:
        self._url = url
        self._context = ssl.create_default_context(cafile=trial.ca)
        self._headers = {"Authorization": f"Bearer {token}"}

    def __call__(self) -> Found:
        answer = get(self._url, "/metrics", self._headers, self._context)
        assert answer.status == 200, answer.body
        promtool("check", "metrics", given=answer.body)
        found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
        for family in text_string_to_metric_families(answer.body):
            for sample in family.samples:
                found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
        return found


async def _is_what_show_says(address: str, scrape: "_Scrape", trial: Trial) -> None:
    """Hold the metrics to the lists, once both are the same before and after."""

    def compare() -> None:
        with Operations(address, trial.certificate("viewer")) as operations:
            before = _said(operations)
            found = scrape()
            if before != _said(operations):
                raise _ChangedError
        for name, samples in before.items():
            assert found.get(f"trainyard_{name}", {}) == samples, name

    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(_ChangedError):
                await asyncio.to_thread(compare)
                return


class _ChangedError(Exception):
    """What is compared has changed meanwhile."""


def _said(operations: Operations) -> Found:
    """The metrics as they follow from what ``trainyard show`` lists."""
    jobs, switches, drops = operations.list(LIST_JOBS), operations.list(LIST_SWITCHES), operations.list(LIST_DROPS)
    levels, links = operations.list(LIST_LEVELS), operations.list(LIST_LINKS)
    flows, pairs = operations.list(LIST_FLOWS), operations.list(LIST_CANDIDATES)
    (state,) = operations.list(LIST_CONTROLLERS)
    conditions = Counter(dict.fromkeys(_CONDITIONS.values(), 0))
    conditions.update(_CONDITIONS[switch.condition] for switch in switches)
    num_cables = len(DUMBBELL.build().cables)
    dropped: Counter[tuple[str, str]] = Counter()
    for drop in drops:
        dropped["agents" if drop.host else "controller", drop.reason] += drop.count
    return {
        "jobs": _counted("level profile", ((_level(job), _SOURCES.get(job.profile.source, "unknown")) for job in jobs)),
        "levels_in_use": _one(len(levels)),
        "flows": _labelled("level", {(str(level.level),): level.flows for level in levels}),
        "steered_flows": _one(sum(flow.steered for flow in flows)),
        "cut_off_flows": _one(sum(flow.is_cut_off for flow in flows)),
        "switches": _labelled("condition", {(condition,): count for condition, count in conditions.items()}),
        "switch_condition": _counted(
            "switch condition", ((switch.name, _CONDITIONS[switch.condition]) for switch in switches)
        ),
        "switch_rules": _labelled(
            "switch", {(each.name,): each.num_rules for each in switches if each.HasField("num_rules")}
        ),
        "switch_planned_rules": _labelled("switch", {(each.name,): each.num_planned_rules for each in switches}),
        "planning_paused": _one(0 if not state.HasField("pause") else 2 if state.pause.is_released else 1),
        "cables": {
            **_labelled("state", {("used",): num_cables - len(links), ("drained",): 0}),
            **_counted("state", ((link.state,) for link in links)),
        },
        "probed_pairs": _one(len(pairs)),
        "probes_received": _one(sum(pair.received for pair in pairs)),
        "probes_missing": _one(sum(pair.missing for pair in pairs)),
        "drops_total": _labelled("by reason", dict(dropped)),
        "plan_number": _one(state.plan_number),
        "recorded_plan_number": _one(state.recorded_plan_number),
        "leadership_term": _one(state.term),
        "database_up": _one(not state.database_problem),
        "audit_lost_entries_total": _one(state.lost_writes),
        "policy_info": _labelled("policy", {(state.policy,): 1}),
    }


def _level(job: wire.JobState) -> str:
    return str(job.level) if job.HasField("level") else ""


def _one(value: float) -> Mapping[frozenset[tuple[str, str]], float]:
    return {frozenset(): value}


def _labelled(names: str, samples: Mapping[tuple[str, ...], float]) -> Mapping[frozenset[tuple[str, str]], float]:
    return {frozenset(zip(names.split(), labels, strict=True)): value for labels, value in samples.items()}


def _counted(names: str, labels: Iterator[tuple[str, ...]]) -> Mapping[frozenset[tuple[str, str]], float]:
    return _labelled(names, Counter(labels))


def _fires(prometheus: Prometheus, alert: str) -> list[Mapping[str, str]]:
    return prometheus.firing().get(alert, [])


async def until_in_thread(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds that is asked for in a thread."""
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(holds):
            await asyncio.sleep(0.2)


async def _panels_have_data(prometheus: Prometheus, job: str) -> None:
    num_queries = 0
    for path in sorted(_DASHBOARDS.glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                query = target["expr"].replace("$job", f"trainyard-{job}").replace("$__rate_interval", "5m")
                assert "$" not in query, query
                await _until_data(prometheus, query)
                num_queries += 1
    assert num_queries > 40


async def _until_data(prometheus: Prometheus, query: str) -> None:
    try:
        await until_in_thread(lambda: any(not math.isnan(value) for _, value in prometheus.query(query)))
    except TimeoutError:
        pytest.fail(f"no data: {query}")


async def _alerts_have_data(prometheus: Prometheus) -> None:
    """Every alert can be evaluated, and Prometheus has every metric that it is about."""
    (group,) = prometheus.get("rules")["groups"]
    assert {rule["health"] for rule in group["rules"]} == {"ok"}
    for rule in group["rules"]:
        names = re.findall(r"\btrainyard_\w+|\bup\b", rule["query"])
        assert names, rule["query"]
        for name in names:
            await _until_data(prometheus, f"count({name})")
