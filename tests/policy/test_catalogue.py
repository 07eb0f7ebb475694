import pytest

from controller.policy.catalogue import decide
from controller.policy.policy_name import PolicyName
from controller.policy.snapshot import Snapshot
from tests.policy.builders import GBPS, make_job, make_links


@pytest.mark.parametrize("name", PolicyName)
def test_every_name_has_a_policy_that_signs_its_plan(name: PolicyName) -> None:
    snapshot = Snapshot(0.0, make_links(GBPS), (make_job("a", [(1e9, ((0,),))]),))
    assert decide(name, snapshot).policy == name.value


def test_bad_snapshots_are_refused() -> None:
    with pytest.raises(ValueError, match=r"links\[0\]: rate_bps"):
        decide(PolicyName.CRUX, Snapshot(0.0, make_links(0.0), ()))
