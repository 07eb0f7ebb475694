"""What a network brings in one moment reaches each job, in whatever order it comes."""

from collections.abc import Sequence

import pytest

from experiments.scenarios.event_queue import Arrival, ComputationEnd
from experiments.scenarios.job_driver import JobDriver
from experiments.scenarios.outages import Outages
from experiments.scenarios.transfers import JobEnd, NetworkEvent, TransferEnd
from policies.model.picoseconds import PS_PER_S
from tests.experiments.scenarios.real_hosts.jobs import CLOS, PHASES, jobs_of
from workloads.replay import StartTransfer
from workloads.scenario import Scenario

SCENARIO = Scenario.model_validate(
    {
        "name": "alone",
        "topology": CLOS,
        "jobs": [{"name": "job-0", "hosts": ["h0", "h2"], "gpus_per_host": 8, "iterations": 2, "workload": PHASES}],
    }
)


class NotedNetwork:
    """A network that notes what starts, and brings nothing by itself."""

    def __init__(self) -> None:
        self.now_ps = 0
        self.started: list[StartTransfer] = []

    def start(self, _job: str, transfers: Sequence[StartTransfer]) -> None:
        self.started += transfers

    async def run(self, _until_ps: int) -> Sequence[NetworkEvent]:
        return []

    def apply(self, _outages: Outages) -> None:
        pass

    def sample_loads(self) -> None:
        return None


@pytest.mark.parametrize("job_ends_first", [True, False])
def test_a_job_that_fails_when_its_transfer_ends_is_over(job_ends_first: bool) -> None:
    _, jobs = jobs_of({})
    network = NotedNetwork()
    driver = JobDriver(SCENARIO, jobs, network, {"job-0": 1.0}, lambda _, now_s: now_s)
    driver.handle(Arrival("job-0"))
    while not network.started:
        network.now_ps = driver.queue.next_ps
        event = driver.queue.pop_due(network.now_ps)
        if isinstance(event, ComputationEnd):
            driver.handle(event)
    network.now_ps += PS_PER_S // 4
    (transfer,) = network.started
    events: list[NetworkEvent] = [
        TransferEnd("job-0", transfer.task, transfer.group, None),
        JobEnd("job-0", "a rank has ended"),
    ]
    driver.take(reversed(events) if job_ends_first else events)
    (replay,) = driver.record.replays
    assert replay.failure == "a rank has ended"
    assert replay.departed_s == driver.now_s
    assert [(sent.start_s, sent.end_s) for sent in replay.communicating] == [(driver.now_s - 0.25, driver.now_s)]
