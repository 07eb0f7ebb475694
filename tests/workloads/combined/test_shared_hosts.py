"""Pipelines of which several stages share a host, against closed forms and plain references."""

import random
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import Any

import pytest

from tests.workloads.combined.builders import LAYERS, MEASURED, TOKENS, WIDTH, sent_bytes, workload
from workloads.arrangement import ZeroCommunicationRun
from workloads.combined.expansion import ranks_on
from workloads.combined.nccl import send_s
from workloads.expansion import expand
from workloads.placement import Placement
from workloads.task_graph import Computation, GroupTransfer, TaskGraph

ACTIVATIONS = TOKENS * WIDTH * 2
"""Bytes of a sample between two blocks."""
ORDERS = ("tp-cp-dp-pp", "tp-cp-pp-dp")
SCHEDULES = ("1f1b", "gpipe", "interleaved", "interleaved_zero_bubble", "zero_bubble_v", "dual_pipe_v")


def graph(num_hosts: int, gpus_per_host: int, **keys: Any) -> TaskGraph:
    hosts = [f"h{number}" for number in range(num_hosts)]
    gpus = tuple(range(gpus_per_host))
    return expand(workload(**keys), Placement(dict.fromkeys(hosts, gpus), dict.fromkeys(hosts, (0, 1))))


def duration_s(of: TaskGraph) -> float:
    return ZeroCommunicationRun.of(of).duration_s


def gbps_that_send_in(seconds: float) -> float:
    return ACTIVATIONS * 8 / 1e9 / seconds


def transfers_inside(of: TaskGraph) -> Counter[str]:
    return Counter(task.name for task in of.tasks if isinstance(task, Computation) and task.share == 0)


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("micro_batches", [1, 4, 5, 8, 13])
@pytest.mark.parametrize("send", [0.001, 0.1])
def test_1f1b_inside_a_host_takes_its_closed_form(stages: int, micro_batches: int, send: float) -> None:
    """The longest path goes forward to the last stage, and in the end back.

    Between, it may turn back over d stages, from the backward pass of a micro-batch on the last stage to the forward
    pass of the (d + 1)th after it: 2 d transfers and no more computation than staying there. At most p - 1 stages are
    before the last, so that m - 1 micro-batches need ceil((m - 1) / p) such turns.
    """
    of = graph(1, stages, pipeline=stages, batch=micro_batches, nvlink_gbps=gbps_that_send_in(send))
    stage_s = LAYERS / stages * 3
    turns = ceil((micro_batches - 1) / stages)
    waits_s = 2 * send * (stages - 1 + micro_batches - 1 - turns)
    assert of.flow_groups == ()
    assert duration_s(of) == pytest.approx((micro_batches + stages - 1) * stage_s + waits_s, rel=1e-4)


@pytest.mark.parametrize("micro_batches", [1, 4, 13])
def test_gpus_of_a_host_are_used_as_those_of_many(micro_batches: int) -> None:
    """They compute m of (m + p - 1) micro-batches of a stage (Narayanan et al., SC 2021, section 2.2.1)."""
    of = graph(1, 8, tensor=2, pipeline=4, batch=micro_batches)
    used = of.computing_host_seconds / duration_s(of)
    assert used == pytest.approx(micro_batches / (micro_batches + 3), rel=1e-3)


def drawn(seed: int) -> tuple[int, dict[str, Any]]:
    """Draw hosts of eight and a job on them."""
    draw = random.Random(seed)
    while True:
        tensor, context, pipeline = draw.choice([1, 2, 4, 8]), draw.choice([1, 2]), draw.randint(2, 4)
        num_hosts = draw.randint(1, 4)
        data, rest = divmod(8 * num_hosts, tensor * context * pipeline)
        if data and not rest:
            break
    micro_batches = draw.choice([4, 8]) * pipeline
    return num_hosts, {
        "tensor": tensor,
        "context": context,
        "pipeline": pipeline,
        "batch": micro_batches * data,
        "order": draw.choice(ORDERS),
        "schedule": draw.choice(SCHEDULES),
        "zero": draw.randint(0, 3),
        "buckets": draw.choice([1, 2]),
        "model": MEASURED,
    }


@pytest.mark.parametrize("seed", range(12))
def test_one_host_takes_as_long_as_one_for_each_stage_with_the_same_latency(seed: int) -> None:
    """On a fabric that is infinitely fast, where transfers take what they take inside a host."""
    num_hosts, keys = drawn(seed)
    keys |= {"order": ORDERS[0], "nvlink_gbps": 1.0}
    num_gpus = 8 * num_hosts
    one = graph(1, num_gpus, **keys)
    many = graph(keys["pipeline"], num_gpus // keys["pipeline"], **keys)
    send = send_s(ACTIVATIONS / keys["tensor"] / keys["context"], 1e9 / 8)
    delayed = [
        Computation(task.group, ("h0",), send, task.after) if isinstance(task, GroupTransfer) else task
        for task in many.tasks
    ]
    assert one.flow_groups == ()
    assert {group.name.split()[0] for group in many.flow_groups} == {"forward", "backward"}
    assert duration_s(one) == pytest.approx(duration_s(replace(many, tasks=tuple(delayed), flow_groups=())), rel=1e-12)
    assert one.computing_host_seconds == pytest.approx(many.computing_host_seconds / keys["pipeline"], rel=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_no_gpu_computes_twice_at_once_and_all_compute_the_batch(seed: int) -> None:
    num_hosts, keys = drawn(seed)
    of = graph(num_hosts, 8, **keys)
    starts_s = ZeroCommunicationRun.of(of).start_s
    changes: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for task, start_s in zip(of.tasks, starts_s, strict=True):
        if isinstance(task, Computation) and task.share:
            for host in task.hosts:
                changes[host] += [(start_s + 1e-9, task.share), (start_s + task.duration_s, -task.share)]
    for of_host in changes.values():
        busy = 0.0
        for _, change in sorted(of_host):
            busy += change
            assert busy <= 1 + 1e-9
    assert of.computing_host_seconds * 8 == pytest.approx(keys["batch"] * LAYERS * 3, rel=2e-3)


@pytest.mark.parametrize("seed", range(40))
def test_what_stages_pass_on_between_hosts_is_what_their_ranks_send(seed: int) -> None:
    num_hosts, keys = drawn(seed)
    keys |= {"schedule": "1f1b"}
    of = graph(num_hosts, 8, **keys)
    ranks = ranks_on(workload(**keys), [f"h{number}" for number in range(num_hosts)], 8)
    degrees = ranks.degrees
    micro_batches = keys["batch"] // degrees.data
    of_rank = micro_batches * ACTIVATIONS / degrees.tensor / degrees.context
    expected: Counter[str] = Counter()
    has_inside = False
    for data in range(degrees.data):
        for stage, following in pairwise(range(degrees.pipeline)):
            for pair in zip(ranks.replica(stage, data), ranks.replica(following, data), strict=True):
                source, destination = map(ranks.host, pair)
                if source == destination:
                    has_inside = True
                else:
                    expected["forward", source] += of_rank
                    expected["backward", destination] += of_rank
    for direction in ("forward", "backward"):
        for host in ranks.hosts:
            assert sent_bytes(of, direction, host) == pytest.approx(expected[direction, host])
    assert bool(transfers_inside(of)) == has_inside
    assert all(flow.source_host != flow.destination_host for group in of.flow_groups for flow in group.flows)


def test_either_order_may_keep_a_replica_or_a_stage_in_a_host() -> None:
    stages, replicas = (graph(2, 8, tensor=4, pipeline=2, batch=8, order=order) for order in ORDERS)
    assert sent_bytes(stages, "forward") == 8 * ACTIVATIONS
    assert sent_bytes(stages, "gradients") == 0
    assert not transfers_inside(stages)
    assert sent_bytes(replicas, "forward") == sent_bytes(replicas, "backward") == 0
    assert sent_bytes(replicas, "gradients") > 0
    assert sum(transfers_inside(replicas).values()) == 2 * 8


def test_some_boundaries_lie_inside_hosts_and_others_between() -> None:
    """Six stages of four ranks on three hosts: the middle host ends one replica and begins another."""
    of = graph(3, 8, tensor=4, pipeline=3, batch=8, order="tp-cp-pp-dp")
    forward = {group.name for group in of.flow_groups if group.name.startswith("forward")}
    assert forward == {"forward 1 of replica 0>2", "forward 0 of replica 1>1"}
    assert transfers_inside(of) == {
        f"{name} inside hosts": 4
        for name in (
            *("forward 0 of replica 0>1", "backward 1 of replica 0>0"),
            *("forward 1 of replica 1>2", "backward 2 of replica 1>1"),
        )
    }


def test_a_gpu_sends_one_transfer_at_a_time() -> None:
    """GPipe on NVLinks that are slower than the stages: forward passes arrive one transfer after the other."""
    of = graph(1, 2, pipeline=2, batch=4, schedule="gpipe", nvlink_gbps=gbps_that_send_in(10.0))
    starts_s = ZeroCommunicationRun.of(of).start_s
    sends = [at for at, task in zip(starts_s, of.tasks, strict=True) if getattr(task, "name", "").endswith("hosts")]
    assert sends[:4] == pytest.approx([4, 14, 24, 34], rel=1e-4)
