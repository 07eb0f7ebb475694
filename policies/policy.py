"""Policy: what turns a Snapshot into a Plan, with all that others need to know of it."""

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from policies.enforcement import JOB_ORDER, SWITCH_LEVELS, Enforcement, RateControl, Tiers
from policies.memory_codec import EncodedMemory, JsonMemoryCodec, MemoryCodec
from policies.open_groups import GroupOrder
from policies.plan import Plan
from policies.snapshot import Snapshot
from policies.validation import check

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*", re.ASCII)
_LONGEST_NAME = 64


def check_policy_name(name: str) -> str:
    """Return the name. Raises ValueError where it is no name of a policy."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise ValueError(
            f"{name!r} is no name of a policy: expected at most {_LONGEST_NAME} lower-case letters and digits,"
            " parts joined by '-', '_' or '.', a letter first"
        )
    return name


@dataclass(frozen=True)
class Policy:
    """A policy: a name, a line on what it does, and the function that decides.

        def shortest_first(snapshot: Snapshot) -> Plan: ...

        POLICY = Policy("shortest-first", "the job with the fewest bytes first", shortest_first)

    Attributes:
        name: Lower-case letters and digits, parts joined by ``-``, ``_`` or ``.``.
        summary: One line for ``trainyard policies``.
        decide: The Plan for a Snapshot: a pure function, without I/O, clock or randomness but ``Snapshot.seed``. It
            raises ValueError, naming the job, where it cannot decide. Call it through ``decide`` of this module.
        ideal_rates: How the simulator sets rates under ``--enforcement ideal``: as many levels as jobs unless told
            otherwise.
        order_groups: Orders the flow groups under way; only with ``Tiers.GROUPS``, and always with it.
        memory_codec: Records ``Plan.memory``; without one it must be a JSON value, or None.
        source: What other processes load it by, a registered name or ``module:attribute``; ``load_policy`` sets it.

    Raises ValueError for a name, a summary or rates that cannot be meant.
    """

    name: str
    summary: str
    decide: Callable[[Snapshot], Plan]
    ideal_rates: RateControl = JOB_ORDER
    order_groups: GroupOrder | None = None
    memory_codec: MemoryCodec = field(default_factory=JsonMemoryCodec, compare=False)
    source: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_policy_name(self.name)
        if not self.summary.strip() or "\n" in self.summary:
            raise ValueError(f"policy {self.name!r}: summary must be one line")
        if (self.order_groups is None) == (self.ideal_rates.tiers is Tiers.GROUPS):
            raise ValueError(f"policy {self.name!r}: order_groups goes with tiers that are groups, and only with these")

    def rate_control(self, enforcement: Enforcement) -> RateControl:
        """How a simulation sets the rates: with levels all policies are alike."""
        return SWITCH_LEVELS if enforcement is Enforcement.LEVELS else self.ideal_rates

    def encode_memory(self, plan: Plan) -> EncodedMemory:
        """What a Plan of this policy remembers, for a record."""
        return EncodedMemory() if plan.memory is None else self.memory_codec.encode(plan.memory)

    def with_memory(self, plan: Plan, encoded: EncodedMemory, snapshot: Snapshot) -> Plan:
        """A Plan of this policy with the memory that a record has of it; ``snapshot`` is what it was decided on."""
        if encoded.is_empty:
            return plan
        return replace(plan, memory=self.memory_codec.decode(encoded, plan, snapshot))


def decide(policy: Policy, snapshot: Snapshot) -> Plan:
    """The Plan of a policy for a Snapshot, with the policy's name on it.

    Raises ValueError, naming the job or link and the field, for a Snapshot that no policy can decide on, and whatever
    the policy raises.
    """
    with _garbage_collection_paused():
        check(snapshot)
        plan = policy.decide(snapshot)
    return plan if plan.policy == policy.name else replace(plan, policy=policy.name)


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Keep the garbage collector from walking all objects of the process meanwhile: decisions make no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
