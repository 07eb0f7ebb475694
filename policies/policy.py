"""Policy: a named function from Snapshot to Plan, with what its callers need to know about it."""

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from policies.enforcement import JOB_ORDER, SWITCH_LEVELS, Enforcement, RateControl, Tiers
from policies.memory_codec import EncodedMemory, JsonMemoryCodec, MemoryCodec
from policies.open_groups import GroupOrder
from policies.plan import Plan
from policies.snapshot import Snapshot
from policies.validation import check_snapshot

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*", re.ASCII)
_MAX_NAME = 64


def check_policy_name(name: str) -> str:
    """Return the name if it is a valid name for a policy.

    Raises:
        ValueError: It is not.
    """
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise ValueError(
            f"{name!r} is not a policy name: expected at most {_MAX_NAME} lower-case letters and digits,"
            " in parts joined by '-', '_' or '.', starting with a letter"
        )
    return name


@dataclass(frozen=True)
class Policy:
    """A policy: a name, a line on what it does, and the function that decides.

        def shortest_first(snapshot: Snapshot) -> Plan: ...

        POLICY = Policy("shortest-first", "the job with the fewest bytes first", shortest_first)

    Attributes:
        name: Lower-case letters and digits, in parts joined by ``-``, ``_`` or ``.``.
        summary: One line for ``trainyard policies``.
        decide: Returns the Plan for a Snapshot. It is a pure function, without I/O, clock or randomness but
            ``Snapshot.seed``, and raises ValueError with the name of the job where it cannot decide. Call it through
            the function ``decide`` of this module.
        ideal_rates: How the simulator sets rates under ``--enforcement ideal``; by default with as many levels as jobs.
        order_groups: Orders the flow groups under way. Required with ``Tiers.GROUPS``, and not allowed otherwise.
        memory_codec: Encodes ``Plan.memory`` for records. The default takes JSON values and None.
        source: The ``module:attribute`` by which other processes load the policy, set by ``load_policy``; None for
            registered policies and for objects of the caller.

    Raises:
        ValueError: The name, the summary or the combination of ``ideal_rates`` and ``order_groups`` is invalid.
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
            raise ValueError(
                f"policy {self.name!r}: order_groups is required with Tiers.GROUPS and not allowed otherwise"
            )

    def rate_control(self, enforcement: Enforcement) -> RateControl:
        """Return how a simulation sets rates. With ``Enforcement.LEVELS`` this is the same for all policies."""
        return SWITCH_LEVELS if enforcement is Enforcement.LEVELS else self.ideal_rates

    def encode_memory(self, plan: Plan) -> EncodedMemory:
        """Return what a Plan of this policy remembers, for a record."""
        return EncodedMemory() if plan.memory is None else self.memory_codec.encode(plan.memory)

    def with_memory(self, plan: Plan, encoded: EncodedMemory, snapshot: Snapshot) -> Plan:
        """Return a Plan of this policy with the memory that a record has of it.

        Args:
            plan: The Plan without its memory.
            encoded: What ``encode_memory`` returned.
            snapshot: The Snapshot of the Plan.
        """
        if encoded.is_empty:
            return plan
        return replace(plan, memory=self.memory_codec.decode(encoded, plan, snapshot))


def decide(policy: Policy, snapshot: Snapshot, *, pauses_collector: bool = True) -> Plan:
    """Return a policy's Plan for a Snapshot, with the policy's name on it. It may raise whatever the policy raises.

    Args:
        policy: The policy.
        snapshot: The Snapshot.
        pauses_collector: Pause the garbage collector meanwhile: decisions create no cycles, and a collection would walk
            the whole process. One whose collections are bounded is better off without the pause, after which a single
            one walks all that the decision has made.

    Raises:
        ValueError: No policy can decide on the Snapshot; the message names the job or link and the field.
    """
    with _garbage_collection_paused() if pauses_collector else nullcontext():
        check_snapshot(snapshot)
        plan = policy.decide(snapshot)
    return plan if plan.policy == policy.name else replace(plan, policy=policy.name)


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
