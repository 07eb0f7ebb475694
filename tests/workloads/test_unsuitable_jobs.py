"""Jobs that do not suit their hosts, their parallelism or a run are refused by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workloads.refusing import Document, change
from workloads.loading import load_scenario


def test_a_job_larger_than_its_hosts_is_refused_on_each(document: Document, refuse: Callable[[str], list[str]]) -> None:
    assert refuse(change(document, ("jobs", 0, "gpus_per_host"), 5)) == [
        "jobs[0] a, hosts[0]: expected at most 4 GPUs, asked for 5: h0 has 4",
        "jobs[0] a, hosts[1]: expected at most 4 GPUs, asked for 5: h2 has 4",
    ]


def test_jobs_may_follow_one_another_on_the_same_gpus(
    document: Document, tmp_path: Path, refuse: Callable[[str], list[str]]
) -> None:
    first = document["jobs"][0]
    del first["iterations"]
    first["duration_s"] = 10
    document["jobs"].append({**first, "name": "b", "arrival_s": 10})
    path = tmp_path / "sequence.yaml"
    path.write_text(yaml.safe_dump(document))
    load_scenario(path)

    document["jobs"][1]["arrival_s"] = 9.9
    assert refuse(yaml.safe_dump(document)) == [
        f"jobs[1] b, hosts[{number}]: expected at most 0 GPUs, asked for 4: {host} has 4, of which 4 are held at the"
        " same time by a"
        for number, host in enumerate(["h0", "h2"])
    ]


def test_a_job_asks_for_gpus_or_names_its_hosts(document: Document, refuse: Callable[[str], list[str]]) -> None:
    first = document["jobs"][0]
    asking = {key: value for key, value in first.items() if key != "hosts"}
    document["jobs"] = [
        {**first, "gpus": 8, "placement": "spread"},
        {**asking, "name": "b", "gpus": 6},
        {**asking, "name": "c", "gpus": 8, "placement": "near"},
        {**asking, "name": "d", "gpus": 12, "workload": {**first["workload"], "pattern": "pairs"}},
        {
            **asking,
            "name": "e",
            "gpus": 4,
            "workload": {
                "type": "phases",
                "compute_s": 1,
                "comm_start": 1,
                "flows": [{"source": "h0", "destination": "h1", "bytes": 1}],
            },
        },
    ]
    assert refuse(yaml.safe_dump(document)) == [
        "jobs[0] a, gpus: expected exactly one of hosts and gpus, got 8",
        "jobs[0] a, placement: expected gpus instead of hosts where a placement is to choose, got 'spread'",
        "jobs[1] b, gpus: expected a multiple of gpus_per_host, which is 4, got 6",
        "jobs[2] c, placement: expected 'affinity' or 'spread', got 'near'",
        "jobs[3] d, gpus: expected an even number of hosts for pairs, got 3",
        "jobs[4] e, gpus: expected hosts instead: the workload's flows name hosts",
        "jobs[3] d, gpus: expected at most 0 hosts with 4 free GPUs, asked for 3",
        "jobs[4] e, gpus: expected at most 0 hosts with 4 free GPUs, asked for 1",
    ]


@pytest.mark.parametrize(
    ("change_of_job", "message"),
    [
        ({"iterations": 2}, "jobs[0] a, iterations: expected more than the 2 warm_up_iterations, got 2"),
        (
            {"bytes": 9e18},
            "jobs[0] a, workload: expected bytes that the slowest link, 10 Gbit/s, would carry in 1e+06 s: an"
            " iteration's would take 1.4e+10 s",
        ),
        (
            {"iterations": 5_000_000},
            "jobs[0] a, iterations: expected a job that ends by 9e+06 s: its computation alone takes 1e+07 s",
        ),
        (
            {"flows_per_pair": 16384, "pattern": "ring", "more": True},
            "jobs[1] b, workload: expected at most 16,384 flows from NIC 0 of h0 to NIC 0 of h2, one per source port:"
            " with this job there are",
        ),
    ],
)
def test_what_could_not_be_planned_or_run_is_refused(
    change_of_job: dict[str, Any], message: str, document: Document, refuse: Callable[[str], list[str]]
) -> None:
    document["warm_up_iterations"] = 2
    job = document["jobs"][0]
    if change_of_job.pop("more", False):
        job["gpus_per_host"] = 1
        document["jobs"].append({**job, "name": "b", "workload": {**job["workload"], "flows_per_pair": 1}})
    job |= {key: value for key, value in change_of_job.items() if key in job}
    job["workload"] = job["workload"] | {key: value for key, value in change_of_job.items() if key not in job}
    assert [line.startswith(message) for line in refuse(yaml.safe_dump(document))] == [True]


def test_a_window_before_the_first_arrival_is_refused(document: Document, refuse: Callable[[str], list[str]]) -> None:
    document["measure"] = {"from_s": 0, "to_s": 5}
    document["jobs"][0]["arrival_s"] = 5
    assert refuse(yaml.safe_dump(document)) == ["measure.to_s: expected more than the first arrival, which is 5"]


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (
            {"type": "pp", "model": "gpt", "micro_batches": 2, "chunks": 2},
            "jobs[0] a, workload.chunks: expected 1 for schedule 1f1b, got 2",
        ),
        (
            {"type": "pp", "model": "gpt", "micro_batches": 2, "schedule": "interleaved", "chunks": 1},
            "jobs[0] a, workload.chunks: expected 2 to 16 for schedule interleaved, got 1",
        ),
        (
            {"type": "fsdp", "model": "gpt", "layer_groups": 2, "replicas": 3},
            "jobs[0] a, hosts: expected a multiple of 3 replicas, got 2 hosts",
        ),
        (
            {"type": "ps", "model": "gpt", "servers": 2},
            "jobs[0] a, hosts: expected more than the 2 servers, got 2 hosts",
        ),
    ],
)
def test_parallelism_that_does_not_suit_is_refused(
    workload: Document, message: str, document: Document, refuse: Callable[[str], list[str]]
) -> None:
    document["jobs"][0]["workload"] = workload
    assert refuse(yaml.safe_dump(document)) == [message]
