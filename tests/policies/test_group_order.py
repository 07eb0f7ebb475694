import numpy as np
import pytest
from scipy.sparse import csr_array

from policies.group_order import group_order
from policies.policy_name import PolicyName

SECONDS = csr_array(np.array([[4.0, 0.0], [1.0, 2.0], [0.0, 1.0]]))
STARTED_S = np.array([0.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (PolicyName.FIFO, [0, 2, 1]),
        (PolicyName.VARYS, [2, 1, 0]),
        (PolicyName.SINCRONIA, [2, 1, 0]),
    ],
)
def test_every_policy_of_groups_orders_them_as_it_orders_jobs(policy: PolicyName, expected: list[int]) -> None:
    assert group_order(policy, SECONDS, STARTED_S).tolist() == expected


def test_a_policy_of_jobs_orders_no_groups() -> None:
    with pytest.raises(ValueError, match="crux orders no flow groups by their bytes"):
        group_order(PolicyName.CRUX, SECONDS, STARTED_S)
