import numpy as np
import pytest
from scipy.sparse import csr_array

from policies.open_groups import OpenGroups
from policies.registry import find_policy

SECONDS = csr_array(np.array([[4.0, 0.0], [1.0, 2.0], [0.0, 1.0]]))
STARTED_S = np.array([0.0, 2.0, 1.0])
GROUPS = OpenGroups(STARTED_S, lambda: SECONDS)


@pytest.mark.parametrize(("name", "expected"), [("fifo", [0, 2, 1]), ("varys", [2, 1, 0]), ("sincronia", [2, 1, 0])])
def test_every_policy_of_groups_orders_them_as_it_orders_jobs(name: str, expected: list[int]) -> None:
    order_groups = find_policy(name).order_groups
    assert order_groups is not None
    assert order_groups(GROUPS).tolist() == expected


def test_echelonflow_orders_no_groups_without_paths() -> None:
    order_groups = find_policy("echelonflow").order_groups
    assert order_groups is not None
    with pytest.raises(ValueError, match="a trace of coflows has none"):
        order_groups(GROUPS)
