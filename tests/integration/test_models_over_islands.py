"""Models that are trained on islands of a fabric have the losses of one piece, and all they send is ranked before."""

import importlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pytest

import runtime as rt
from tests.docs.pages import ROOT
from tests.integration.islands import four_hosts
from tests.runtime.ranking import until

pytestmark = pytest.mark.slow

STEPS = 6


@pytest.fixture(scope="module")
def server() -> Iterator[rt.LocalRuntime]:
    """Hosts that find the examples, as those of a script in their folder would."""
    pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "docs" / "examples"))
        patched.setattr(importlib.import_module("pipelined_gpt"), "STEPS", STEPS)
        with four_hosts() as islands, islands.runtime(devices=2) as started:
            yield started


@pytest.fixture
def client(server: rt.LocalRuntime) -> Iterator[rt.Runtime]:
    """The runtime that examples use, as they connect to none themselves."""
    with rt.connect(server.address, server.tokens["local"]) as connected:
        yield connected
    until(lambda: not server.status()["network"]["jobs"])


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_a_pipeline_on_four_islands(client: rt.Runtime, schedule: str) -> None:
    gpt = importlib.import_module("pipelined_gpt")
    layers, parameters = gpt.layers_of(4), gpt.initial_parameters(4)
    losses = gpt.in_a_pipeline(layers, parameters, 4, gpt.SCHEDULES[schedule])
    trained, sent = watched(client, losses, f"pipeline, {schedule}")
    assert trained == pytest.approx(gpt.in_one_piece(layers, parameters), rel=1e-5)
    pairs = {(event["pid"], event["name"]) for event in sent}
    neighbours = [(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)]
    assert pairs == {(source, f"to host {destination}") for source, destination in neighbours}
    assert len(sent) >= len(neighbours) * gpt.MICRO_BATCHES


def test_replicas_on_two_islands(client: rt.Runtime) -> None:
    gpt, replicas = map(importlib.import_module, ("pipelined_gpt", "two_islands_gpt"))
    stages = gpt.initial_parameters(2)
    steps = replicas.on_islands(list(chain(*stages)))
    trained, sent = watched(client, (loss for loss, _ in steps), "replicas")
    assert trained == pytest.approx(gpt.in_one_piece([gpt.first, gpt.last], stages), rel=1e-5)
    assert {event["pid"] for event in sent} == {0, 1}


def test_experts_on_another_island(client: rt.Runtime) -> None:
    experts = importlib.import_module("mixture_of_experts")
    parameters = experts.initial_parameters()
    steps = experts.on_islands(*parameters)
    trained, sent = watched(client, (loss for loss, _ in steps), "experts")
    assert trained == pytest.approx(experts.in_one_piece(*parameters), rel=1e-5)
    assert {event["pid"] for event in sent} == {0, 1}


def watched(client: rt.Runtime, losses: Iterable[float], name: str) -> tuple[list[float], list[dict[str, Any]]]:
    """Train, and see that all which was sent in a step of a ranked job was announced and ranked before.

    The first step takes parameters of the client, so it is another job than those after it. A job is registered anew
    where functions take much longer than before; what the step sends meanwhile does not count. Returns the losses, and
    what the last step that counts has sent.
    """
    trained: list[float] = []
    everything: list[dict[str, Any]] = []
    last: list[dict[str, Any]] = []
    seen = {each["args"]["execution"] for each in transfers_of(client)}
    job, before = "", set[str]()
    for number, loss in enumerate(losses):
        trained.append(loss)
        until(lambda: not any(each["executions"] for each in client.status()["clients"]))
        sent = [each for each in transfers_of(client) if each["args"]["execution"] not in seen]
        seen.update(each["args"]["execution"] for each in sent)
        everything += sent
        after = {str(each["job"]) for each in client.status()["network"]["jobs"]}
        if number >= 2 and job in before & after:
            assert all(is_announced(each) and is_ranked(each) for each in sent)
            last = sent
        job = sent[-1]["args"]["job"]
        before = until(lambda: is_told(client)) and {str(each["job"]) for each in client.status()["network"]["jobs"]}
    shares = [sum(map(holds, everything)) / len(everything) for holds in (is_announced, is_ranked)]
    print(f"{name}: {len(everything)} transfers, {shares[0]:.3f} announced before made, {shares[1]:.3f} ranked before")
    return trained, last


def is_told(client: rt.Runtime) -> bool:
    """Whether all flows of all jobs have levels; those of a job that is withdrawn are gone."""
    status = client.status()
    flows = [level for host in status["hosts"] for _, _, level, _ in host["flows"]]
    plans = [each["plan"] for each in status["network"]["jobs"]]
    return None not in plans and all(level >= 0 for level in flows) and len(flows) == flows_of(status)


def flows_of(status: Any) -> int:
    return sum(each["flows"] for each in status["network"]["jobs"])


def is_announced(event: dict[str, Any]) -> bool:
    told = event["args"]
    return told["announced_us"] is not None and bool(told["announced_us"] < told["made_us"])


def is_ranked(event: dict[str, Any]) -> bool:
    told = event["args"]
    return told["level"] is not None and bool(told["ranked_us"] < event["ts"])


def transfers_of(client: rt.Runtime) -> list[dict[str, Any]]:
    return [event for event in client.trace() if event.get("cat") == "transfer"]
