"""How the rates of a policy come about in a simulation: by which allocator, on which order, decided how often.

A Plan holds no rates. Hardware enforces it by levels: a decision at job events, and fair sharing inside a level. A
simulator may also give a policy the rates of its own paper, at its own cadence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from policies.policy_name import PolicyName


class Allocator(StrEnum):
    """A rate allocator of ``policies.rates``."""

    MAX_MIN = "max-min"
    MADD = "madd"
    ECHELON_MADD = "echelon-madd"
    ORDER_GREEDY = "order-greedy"


class Cadence(StrEnum):
    """What makes a policy decide anew: a job comes or goes, a flow group begins or ends, or a flow does."""

    JOB_EVENT = "job event"
    GROUP_EVENT = "group event"
    FLOW_EVENT = "flow event"


class Tiers(StrEnum):
    """What an allocator's tiers are: levels, jobs in the Plan's order, or open flow groups in the policy's order."""

    LEVELS = "levels"
    JOBS = "jobs"
    GROUPS = "groups"


class Enforcement(StrEnum):
    """What a run may assume of the network: the levels that switches have, or whatever rates the policy asks for."""

    LEVELS = "levels"
    IDEAL = "ideal"


@dataclass(frozen=True, slots=True)
class RateControl:
    """By what, between whom and how often rates are set."""

    allocator: Allocator
    tiers: Tiers
    cadence: Cadence


_LEVELS = RateControl(Allocator.MAX_MIN, Tiers.LEVELS, Cadence.JOB_EVENT)
_JOBS = RateControl(Allocator.MAX_MIN, Tiers.JOBS, Cadence.JOB_EVENT)
_GREEDY_GROUPS = RateControl(Allocator.ORDER_GREEDY, Tiers.GROUPS, Cadence.GROUP_EVENT)

_IDEAL: Mapping[PolicyName, RateControl] = {
    PolicyName.ECMP: _LEVELS,
    PolicyName.CRUX: _JOBS,
    PolicyName.CRUX_PA: _JOBS,
    PolicyName.CRUX_PS_PA: _JOBS,
    PolicyName.FIFO: _GREEDY_GROUPS,
    PolicyName.VARYS: RateControl(Allocator.MADD, Tiers.GROUPS, Cadence.GROUP_EVENT),
    PolicyName.SINCRONIA: _GREEDY_GROUPS,
    PolicyName.TACCL_STAR: _JOBS,
    PolicyName.CASSINI: _LEVELS,
    PolicyName.ECHELONFLOW: RateControl(Allocator.ECHELON_MADD, Tiers.GROUPS, Cadence.FLOW_EVENT),
    PolicyName.TRAINYARD: _JOBS,
}


def rate_control(policy: PolicyName, enforcement: Enforcement) -> RateControl:
    """How a simulation sets the rates under a policy.

    With levels all policies are alike. The ideal of those that order jobs is as many levels as jobs.
    """
    return _LEVELS if enforcement is Enforcement.LEVELS else _IDEAL[policy]
