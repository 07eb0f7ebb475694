"""What a Plan takes jobs to send, worked out by hand."""

import pytest

from controller.telemetry.planned_loads import PlannedLoads
from policies.plan import FlowPlan, Plan
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links


def test_flows_count_on_the_paths_they_have_over_the_iterations_of_their_jobs() -> None:
    # One second of computation and one of communication; and half a second of communication behind the computation.
    jobs = (
        make_job("a", [(1e9 / 8, ((0, 2), (1, 2)))], compute_s=1.0, comm_start=1.0),
        make_job("b", [(1e9 / 8, ((2,),)), (0.0, ((0,),))], compute_s=1.5, comm_start=1.0),
    )
    keys = [flow.key for job in jobs for flow in job.flows]
    paths = dict(zip(keys, [(1, 2), None, None], strict=True))
    flows = {key: FlowPlan(path, 0, 0) for key, path in paths.items()}
    snapshot = Snapshot(0.0, make_links(GBPS, GBPS, 2 * GBPS, GBPS), jobs)
    planned = PlannedLoads.of(snapshot, Plan("crux", (), flows))
    assert planned.utilisation.tolist() == pytest.approx([0.0, 0.5, 0.25 + 0.25, 0.0])
    assert planned.iteration_s.tolist() == pytest.approx([0.0, 1.0, 1.0, 0.0])


def test_nobody_sends_nothing() -> None:
    planned = PlannedLoads.of(Snapshot(0.0, make_links(GBPS, GBPS), ()), Plan("crux", (), {}))
    assert planned.utilisation.tolist() == planned.iteration_s.tolist() == [0.0, 0.0]
