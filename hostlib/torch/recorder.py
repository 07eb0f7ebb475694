"""Records what a process does, as cheaply as it can: a tuple for each event, in the thread that does it."""

import os
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any

import torch
from torch.distributed import Work
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from hostlib.torch.events import Completion, Event, Issue, StepBegin, StepEnd, Wait
from hostlib.torch.stages import StageTee
from hostlib.torch.tee import Seen, Tee
from hostlib.torch.waits import WaitTee

_now_ns = time.perf_counter_ns
_make_tuple = tuple.__new__
"""Makes a named tuple in half the time."""
_HAS_CUDA = torch.cuda.is_available()
_MOST_EVENTS = 1 << 20
"""What is kept while nobody takes it. The oldest go first."""


class Recorder:
    """Collectives and steps of this process, and its waits and passes of pipelines while it is profiling.

    ``has_stepped`` is set at the end of each step while it is profiling. A forked child records nothing.
    """

    def __init__(self) -> None:
        self.has_stepped = threading.Event()
        self._events: deque[Event] = deque(maxlen=_MOST_EVENTS)
        self._note = self._events.append
        self._number = 0
        self._waited_for: dict[int, tuple[Any, int]] = {}
        self._running: dict[int, Any] = {}
        self._waits: WaitTee | None = None
        self._stages: StageTee | None = None
        self._pid = os.getpid()
        self._hooks = (
            register_optimizer_step_pre_hook(self._step_begins),
            register_optimizer_step_post_hook(self._step_ends),
        )
        self._tee = Tee(self)

    @property
    def failure(self) -> Exception | None:
        """Why collectives are seen no more; None: they are."""
        return self._tee.failure

    @property
    def is_profiling(self) -> bool:
        """Whether waits are recorded."""
        return self._waits is not None

    @property
    def num_collectives(self) -> int:
        """How many collectives this process has issued."""
        return self._number

    def take(self) -> list[Event]:
        """Return the events since the last call, oldest first."""
        if self._stages is not None:
            self._stages.look()
        events = self._events
        return [events.popleft() for _ in range(len(events))]

    def start_profiling(self) -> None:
        """Record waits and passes of pipelines, too."""
        if self._waits is None:
            self._waits = WaitTee(self._waited)
            self._stages = StageTee(self._note)

    def stop_profiling(self) -> None:
        """Record waits and passes no longer."""
        waits, self._waits = self._waits, None
        if waits is not None:
            waits.remove()
        stages, self._stages = self._stages, None
        if stages is not None:
            stages.remove()
        self._waited_for.clear()
        self._running.clear()

    def close(self) -> None:
        """Record nothing any more."""
        self.stop_profiling()
        self._tee.remove()
        for hook in self._hooks:
            hook.remove()

    def note_completed(self) -> None:
        """Note which collectives have ended by now.

        It is to be called often. A callback of their futures would know the moment, but gloo's threads call it, and
        where a peer has died, the interpreter's end waits for these threads while they wait for the interpreter.
        """
        for number, work in list(self._running.items()):
            with suppress(RuntimeError):  # it has failed
                if work.is_completed() and self._running.pop(number, None) is not None:
                    self._note(Completion(number, _now_ns()))

    # ---- heard in the threads of the job ----------------------------------------------------------------------------

    def issued(self, operation: str, group: str, seen: Seen) -> int | None:
        """See ``Observer``."""
        number = self._number = self._number + 1
        self._note(_make_tuple(Issue, (number, _now_ns(), operation, group, *seen)))
        return None if self._waits is None else number

    def returned(self, number: int, result: Any) -> None:
        """See ``Observer``."""
        work = Work.unbox(result[-1] if isinstance(result, tuple) else result)
        # As long as this object lives, Python gets no other one for the same work.
        self._waited_for[id(work)] = work, number
        if not _HAS_CUDA:  # work of NCCL counts as complete when it is queued
            self._running[number] = work

    def _waited(self, work: Any, begin_ns: int, end_ns: int) -> None:
        _, number = self._waited_for.pop(id(work), (None, None))
        self._events.append(Wait(number, begin_ns, end_ns))

    def _step_begins(self, *_: object) -> None:
        if self._waits is not None:
            self.note_completed()
            self._events.append(StepBegin(_now_ns()))

    def _step_ends(self, optimizer: object, *_: object) -> None:
        if os.getpid() != self._pid:
            return
        self.note_completed()
        self._events.append(StepEnd(_now_ns(), id(optimizer)))
        self._waited_for.clear()
        self._running.clear()
        if self._waits is not None:
            self.has_stepped.set()
