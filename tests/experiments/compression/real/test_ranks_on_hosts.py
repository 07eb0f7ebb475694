"""Eight ranks train on real ports, with plain DDP and with the product's hook."""

from collections.abc import Sequence

import pytest

from experiments.compression.methods import METHODS
from experiments.compression.outcomes import ConfirmationCase
from experiments.compression.real.confirmation import beside_virtual_time
from experiments.compression.real.plan import Task, TaskResult
from experiments.compression.real.ranks_on_hosts import ran
from experiments.compression.real_models import RESNET18
from experiments.scenarios.backend import RunError
from hostlib.compression.control.cost import MeasuredCosts
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import NetworkError
from topologies.specification import StarSpecification

pytestmark = pytest.mark.slow

FACTOR = 50.0
RATE_MBPS = 10_000.0
CASE = ConfirmationCase("ResNet18", 0.01, (RATE_MBPS,), 2)
TASKS = (Task("AllReduce", 2, 1), Task("TopK-0.1", 3, 1), Task("budget", 3, 3))


@pytest.fixture(scope="module")
def results() -> Sequence[TaskResult]:
    """What the tasks came to."""
    star = StarSpecification(kind="star", hosts=1, gpus_per_host=1, nics_per_host=1, host_link_gbps=1)
    try:
        with FabricNamespaces(star.build()):
            pass
    except NetworkError as error:
        pytest.skip(f"no rank runs on real hosts: {error}")
    return ran(CASE, RATE_MBPS, FACTOR, TASKS)


def test_no_step_is_faster_than_its_link(results: Sequence[TaskResult]) -> None:
    dense, top_k, budget = results
    dense_s = 2 * 7 / 8 * 32 * RESNET18.elements / (RATE_MBPS * 1e6 / FACTOR)
    assert dense.step_s[0] > dense_s
    assert (dense.ratio, dense.costs) == (1.0, None)
    assert 0.099 < top_k.ratio < 0.101
    assert top_k.step_s[0] > 7 * 0.1 * 32 * RESNET18.elements / (RATE_MBPS * 1e6 / FACTOR)
    assert budget.ratio < 1
    assert min(budget.step_s) < dense.step_s[0], "what is left out makes steps shorter"
    assert all(0 <= result.idle_share <= 1 for result in results)


def test_virtual_time_is_the_link_alone_where_codecs_cost_nothing(results: Sequence[TaskResult]) -> None:
    _, top_k, _ = results
    assert top_k.costs is not None
    assert top_k.costs.hop_s > 0
    compared = beside_virtual_time(CASE, RATE_MBPS, FACTOR, TASKS[1], top_k, MeasuredCosts())
    assert compared.real_step_s == top_k.step_s[0] / FACTOR
    assert compared.virtual_ratio == pytest.approx(METHODS["TopK-0.1"].plan_at(0, 1, 1)[0].ratio)  # type: ignore[misc,index]
    assert compared.virtual_step_s < compared.real_step_s, "codecs cost nothing in this virtual time"


def test_a_rank_that_fails_is_named() -> None:
    with pytest.raises(RunError, match=r"the program at h\d has ended with status 1: .*no such model"):
        ran(ConfirmationCase("no such model", 0.01, (RATE_MBPS,), 1), RATE_MBPS, FACTOR, TASKS[:1])
