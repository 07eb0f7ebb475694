import gc

import pytest

from policies.catalogue import decide
from policies.policy_name import PolicyName
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links


@pytest.mark.parametrize("name", PolicyName)
def test_every_name_has_a_policy_that_signs_its_plan(name: PolicyName) -> None:
    snapshot = Snapshot(0.0, make_links(GBPS), (make_job("a", [(1e9, ((0,),))]),))
    assert decide(name, snapshot).policy == name.value


def test_bad_snapshots_are_refused() -> None:
    with pytest.raises(ValueError, match=r"links\[0\]: rate_bps"):
        decide(PolicyName.CRUX, Snapshot(0.0, make_links(0.0), ()))


def test_decisions_leave_no_cycles_for_the_collector_and_let_it_run_again() -> None:
    jobs = tuple(make_job(name, [(1e9, ((0,), (1,)))]) for name in "abc")
    snapshot = Snapshot(0.0, make_links(GBPS, GBPS), jobs)
    decide(PolicyName.CRUX, snapshot)
    gc.collect()
    gc.disable()
    try:
        decide(PolicyName.CRUX, snapshot)
        assert not gc.isenabled()
        assert gc.collect() == 0
    finally:
        gc.enable()
    decide(PolicyName.CRUX, snapshot)
    assert gc.isenabled()
