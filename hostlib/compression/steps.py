"""From step to step: what was measured becomes a proposal, and all ranks' proposals become the next choices.

A rank's proposal of one step travels beside the first bucket of the next, so that no rank waits for it. Every rank then
has the same proposals and decides by itself, which gives the same choices everywhere, from the step after that on.

A remainder, which is what the last bucket of a step left out, belongs to the step whose buckets it travels before.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from hostlib.compression.agreement import Proposal, agreed, read_proposals
from hostlib.compression.choice import Choice
from hostlib.compression.collectives import Ranks
from hostlib.compression.control.cost import Bucket, MeasuredCosts, transmission_cost
from hostlib.compression.controllers import Controller
from hostlib.compression.direction import Direction
from hostlib.compression.lanes import Beside, Carried
from hostlib.compression.residuals import Sections
from hostlib.compression.sensing import Counters, GroupSockets, StepClock, StepTimes
from hostlib.compression.transmissions import Gradient

_MOST_BUCKETS = 65_536
"""Of a step, for seeds that differ; the remainder has the last number."""


@dataclass(slots=True)
class Sent:
    """One bucket of one step: what it holds, what it was to be sent as, and what became of that.

    ``choice`` is None where the bucket is not one of those that the controller knows, and so is sent as it is.
    """

    gradient: Gradient
    bucket: Bucket
    choice: Choice | None
    carried: Carried = field(default_factory=Carried)


@dataclass(frozen=True, slots=True)
class Totals:
    """What was sent in all steps.

    Attributes:
        sent_bytes: Payload that this rank sent.
        dense_bytes: What it would have sent by all-reduces of what the model hands over.
        passed_on: Buckets that were not sent as chosen, by cause.
    """

    sent_bytes: int = 0
    dense_bytes: float = 0
    passed_on: Counter[str] = field(default_factory=Counter)

    def plus(self, sent: Sequence[Sent], remainder: Sent | None) -> "Totals":
        """Return these with one step's buckets and remainder added."""
        dense = [transmission_cost(each.bucket.dense_choice, each.bucket, MeasuredCosts()).out_bytes for each in sent]
        causes = Counter(each.gradient.passed_on for each in sent if each.gradient.passed_on)
        return Totals(
            self.sent_bytes + sum(each.carried.sent_bytes for each in (*sent, *([remainder] if remainder else []))),
            self.dense_bytes + sum(dense),
            self.passed_on + causes,
        )


class Steps:
    """The agreement as one rank sees it.

    A step is a series of buckets. When the first of the next one comes, all of the step before it are complete.

    Args:
        controllers: Makes the controller of a layout; it is called whenever the buckets are others than before.
        sockets: The connections that carry the buckets.

    Attributes:
        count: Steps that have begun.
        malformed: Proposals that could not be read.
        direction: Rides in the proposals.
        clock: Times the steps.
        completed: What was sent in all steps that are complete.
        times: Of the last of them; None before the first.
        gradient_bytes: Of all its buckets but sparse ones, as the model hands them over.
    """

    def __init__(self, controllers: Callable[[Sequence[Bucket]], Controller], sockets: GroupSockets) -> None:
        self.count = 0
        self.malformed = 0
        self.direction = Direction()
        self.clock = StepClock()
        self.completed = Totals()
        self.times: StepTimes | None = None
        self.gradient_bytes = 0
        self._controllers = controllers
        self._sockets = sockets
        self._controller: Controller | None = None
        self._layout: tuple[Sections, ...] = ()
        self._choices: tuple[Choice, ...] = ()
        self._sent: list[Sent] = []
        self._last: list[Sent] = []
        self._next_remainder: Sent | None = None
        self._remainder: Sent | None = None
        self._last_remainder: Sent | None = None
        self._begin_s = 0.0
        self._counters = self._first_counters = sockets.counters()

    @property
    def sent(self) -> tuple[Sent, ...]:
        """The buckets of the last step that has begun."""
        return tuple(self._sent)

    @property
    def remainder(self) -> Sent | None:
        """What travelled before them of the step before; None: nothing did."""
        return self._remainder

    @property
    def counters(self) -> Counters:
        """TCP's counters at the end of the last step that is complete."""
        return self._counters

    @property
    def reason(self) -> str:
        """Why the choices for the next step are what they are."""
        return "The buckets are not known yet." if self._controller is None else self._controller.reason

    def begin(self) -> Beside | None:
        """Begin a step, whose first bucket is ready; return what travels beside it, the same size on every rank."""
        beside = self._propose() if self._sent else None
        self.completed = self.completed.plus(self._sent, self._remainder)
        self._last, self._sent = self._sent, []
        self._last_remainder, self._remainder, self._next_remainder = self._remainder, self._next_remainder, None
        self._begin_s = self.clock.begin()
        self._choices = () if self._controller is None else self._controller.choices
        self.count += 1
        return beside

    def next_bucket(self, gradient: Gradient, bucket: Bucket) -> Sent:
        """Add the next bucket of this step, and choose how it is sent."""
        index = len(self._sent)
        is_known = index < len(self._choices) and self._layout[index] == gradient.sections
        sent = Sent(gradient, bucket, self._choices[index] if is_known else None)
        self._sent.append(sent)
        return sent

    def next_remainder(self, ranks: Ranks) -> Sent | None:
        """Return what the last bucket left out as it is sent before the next step's buckets; None: it is not.

        Its gradient is zeros: all that there is to send is in the residuals.
        """
        choice = None if self._controller is None else self._controller.remainder
        if choice is None or not self._sent:
            return None
        last = self._sent[-1]
        buffer = torch.zeros(last.bucket.elements, device=last.gradient.buffer.device)
        seed = (self.count * _MOST_BUCKETS + _MOST_BUCKETS - 1) * ranks.size + ranks.rank
        gradient = Gradient(buffer, last.gradient.sections, last.gradient.parameters, seed)
        self._next_remainder = Sent(gradient, last.bucket, choice)
        return self._next_remainder

    def tcp_sent_bytes(self) -> int:
        """Return the payload that TCP has sent on the group's connections."""
        return self._sockets.counters().sent_bytes - self._first_counters.sent_bytes

    def seed(self, ranks: Ranks) -> int:
        """Return a number that no other rank, step or bucket has, for the next bucket of this step."""
        return (self.count * _MOST_BUCKETS + len(self._sent)) * ranks.size + ranks.rank

    def totals(self) -> Totals:
        """Return what was sent until now."""
        return self.completed.plus(self._sent, self._remainder)

    def _propose(self) -> Beside:
        remainder = None if self._remainder is None else self._remainder.carried
        times = self.times = self.clock.step(self._begin_s, [sent.carried for sent in self._sent], remainder)
        buffers = [sent.gradient.buffer for sent in self._sent]
        self.gradient_bytes = sum(buffer.nbytes for buffer in buffers if not buffer.is_sparse)
        before, self._counters = self._counters, self._sockets.counters()
        proposal = Proposal(
            times.network_s,
            times.ready_s,
            times.exchange_s,
            times.compute_s,
            times.backward_s,
            times.step_s,
            max(0, self._counters.retransmissions - before.retransmissions),
            self._counters.round_trip_s,
            self.direction.rate_bps,
            self.direction.slack_s,
        )
        layout = tuple(sent.gradient.sections for sent in self._sent)
        if layout != self._layout:
            self._layout = layout
            self._controller = self._controllers([sent.bucket for sent in self._sent])
        return Beside(proposal.to_bytes(), self._hear)

    def _hear(self, messages: list[bytes]) -> None:
        proposals, malformed = read_proposals(messages)
        self.malformed += malformed
        if self._controller is not None:
            self._controller.decide(
                [sent.choice or sent.bucket.dense_choice for sent in self._last],
                agreed(proposals),
                None if self._last_remainder is None else self._last_remainder.choice,
            )
