import subprocess
import sys

import pytest

from policies.enforcement import Allocator, Cadence, Enforcement, Tiers, rate_control
from policies.policy_name import PolicyName


@pytest.mark.parametrize("policy", PolicyName)
def test_with_levels_all_policies_are_alike(policy: PolicyName) -> None:
    control = rate_control(policy, Enforcement.LEVELS)
    assert (control.allocator, control.tiers, control.cadence) == (Allocator.MAX_MIN, Tiers.LEVELS, Cadence.JOB_EVENT)


@pytest.mark.parametrize("policy", PolicyName)
def test_who_orders_groups_decides_when_they_begin_and_end(policy: PolicyName) -> None:
    control = rate_control(policy, Enforcement.IDEAL)
    assert (control.tiers is Tiers.GROUPS) == (control.cadence is not Cadence.JOB_EVENT)
    assert (control.tiers is Tiers.GROUPS) == (control.allocator is not Allocator.MAX_MIN)


def test_policies_decide_without_a_compiler() -> None:
    script = "import sys, policies.catalogue; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
