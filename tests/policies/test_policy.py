import gc

import pytest

from policies.policy import decide
from policies.registry import find_policy, policy_names
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links


@pytest.mark.parametrize("name", policy_names())
def test_every_name_has_a_policy_that_signs_its_plan(name: str) -> None:
    snapshot = Snapshot(0.0, make_links(GBPS), (make_job("a", [(1e9, ((0,),))]),))
    assert decide(find_policy(name), snapshot).policy == name


def test_bad_snapshots_are_refused() -> None:
    with pytest.raises(ValueError, match=r"links\[0\]: rate_bps"):
        decide(find_policy("crux"), Snapshot(0.0, make_links(0.0), ()))


def test_decisions_leave_no_cycles_for_the_collector_and_let_it_run_again() -> None:
    jobs = tuple(make_job(name, [(1e9, ((0,), (1,)))]) for name in "abc")
    snapshot = Snapshot(0.0, make_links(GBPS, GBPS), jobs)
    decide(find_policy("crux"), snapshot)
    gc.collect()
    gc.disable()
    try:
        decide(find_policy("crux"), snapshot)
        assert not gc.isenabled()
        assert gc.collect() == 0
    finally:
        gc.enable()
    decide(find_policy("crux"), snapshot)
    assert gc.isenabled()
