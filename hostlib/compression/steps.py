"""From step to step: what was measured becomes a proposal, and all ranks' proposals become the next choices.

A rank's proposal of one step travels beside the first bucket of the next, so that no rank waits for it. Every rank then
has the same proposals and decides by itself, which gives the same choices everywhere, from the step after that on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from hostlib.compression.agreement import Agreed, Proposal, agreed, read_proposals
from hostlib.compression.choice import Choice
from hostlib.compression.control.cost import Bucket
from hostlib.compression.lanes import Beside, Carried
from hostlib.compression.residuals import Sections
from hostlib.compression.sensing import Counters, GroupSockets, StepClock
from hostlib.compression.transmissions import Gradient


class Controller(Protocol):
    """Decides how the buckets of one layout are sent, from numbers that all ranks share and nothing else."""

    def decide(self, numbers: Agreed | None) -> tuple[Choice, ...]:
        """Return the next step's choices, one for each bucket; without numbers, the first or the same ones."""

    def reasons(self) -> tuple[str, ...]:
        """Return why each of the last choices is what it is."""


Controllers = Callable[[tuple[Bucket, ...]], Controller]
"""Makes the controller of a job that has these buckets."""


@dataclass(slots=True)
class Sent:
    """One bucket of one step: what it holds, what it was to be sent as, and what became of that.

    ``choice`` is None where the bucket is not one of those that the controller knows, and so is sent as it is.
    """

    gradient: Gradient
    bucket: Bucket
    choice: Choice | None
    carried: Carried = field(default_factory=Carried)


@dataclass(slots=True)
class Direction:
    """What Trainyard's controller leaves the job; None: there is no controller, or it has not said."""

    rate_bps: float | None = None
    slack_s: float | None = None


class Steps:
    """The agreement as one rank sees it.

    A step is a series of buckets. When the first of the next one comes, all of the step before it are complete.

    Args:
        controllers: Makes a controller whenever the buckets are others than before.
        sockets: The connections that carry the buckets.

    Attributes:
        count: Steps that have begun.
        malformed: Proposals that could not be read.
        direction: Rides in the proposals.
        clock: Times the steps.
    """

    def __init__(self, controllers: Controllers, sockets: GroupSockets) -> None:
        self.count = 0
        self.malformed = 0
        self.direction = Direction()
        self.clock = StepClock()
        self._controllers = controllers
        self._sockets = sockets
        self._controller: Controller | None = None
        self._layout: tuple[Sections, ...] = ()
        self._choices: tuple[Choice, ...] = ()
        self._next: tuple[Choice, ...] = ()
        self._sent: list[Sent] = []
        self._last: list[Sent] = []
        self._begin_s = 0.0
        self._counters = sockets.counters()

    @property
    def last(self) -> tuple[Sent, ...]:
        """The buckets of the last step that is complete."""
        return tuple(self._last)

    @property
    def counters(self) -> Counters:
        """TCP's counters at the end of the last step that is complete."""
        return self._counters

    def reasons(self) -> tuple[str, ...]:
        """Return why the choices for the next step are what they are; nothing before the first ones."""
        return () if self._controller is None else self._controller.reasons()

    def begin(self) -> Beside | None:
        """Begin a step, whose first bucket is ready; return what travels beside it, the same size on every rank."""
        beside = self._propose() if self._sent else None
        self._last, self._sent = self._sent, []
        self._begin_s = self.clock.begin()
        self._choices = self._next
        self.count += 1
        return beside

    def next_bucket(self, gradient: Gradient, bucket: Bucket) -> Sent:
        """Add the next bucket of this step, and choose how it is sent."""
        index = len(self._sent)
        is_known = index < len(self._choices) and self._layout[index] == gradient.sections
        sent = Sent(gradient, bucket, self._choices[index] if is_known else None)
        self._sent.append(sent)
        return sent

    def _propose(self) -> Beside:
        times = self.clock.step(self._begin_s, [sent.carried for sent in self._sent])
        before, self._counters = self._counters, self._sockets.counters()
        proposal = Proposal(
            times.network_s,
            times.ready_s,
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
            self._layout, self._next = layout, ()
            self._controller = self._controllers(tuple(sent.bucket for sent in self._sent))
        return Beside(proposal.to_bytes(), self._hear)

    def _hear(self, messages: list[bytes]) -> None:
        proposals, malformed = read_proposals(messages)
        self.malformed += malformed
        if self._controller is not None:
            self._next = self._controller.decide(agreed(proposals))
