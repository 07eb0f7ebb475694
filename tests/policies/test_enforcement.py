import subprocess
import sys

import pytest

from policies.enforcement import Allocator, Cadence, Enforcement, Tiers
from policies.registry import find_policy, policy_names


@pytest.mark.parametrize("policy", policy_names())
def test_with_levels_all_policies_are_alike(policy: str) -> None:
    control = find_policy(policy).rate_control(Enforcement.LEVELS)
    assert (control.allocator, control.tiers, control.cadence) == (Allocator.MAX_MIN, Tiers.LEVELS, Cadence.JOB_EVENT)


@pytest.mark.parametrize("policy", policy_names())
def test_who_orders_groups_decides_when_they_begin_and_end(policy: str) -> None:
    control = find_policy(policy).rate_control(Enforcement.IDEAL)
    assert (control.tiers is Tiers.GROUPS) == (control.cadence is not Cadence.JOB_EVENT)
    assert (control.tiers is Tiers.GROUPS) == (control.allocator is not Allocator.MAX_MIN)


def test_names_need_no_numpy_and_policies_no_compiler() -> None:
    script = (
        "import sys; from policies.registry import find_policy, policy_names;"
        "names = policy_names(); early = {'numpy', 'scipy'} & sys.modules.keys();"
        "found = [find_policy(name) for name in names]; sys.exit(bool(early) or 'numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
