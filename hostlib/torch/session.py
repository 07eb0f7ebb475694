"""The life of one process of a job: it observes iterations, reports them, and sends at the levels that it is told.

Two threads do all of it. One takes what the recorder has seen, and measures. The other one speaks: in the first rank
with the controller and all other ranks, elsewhere with the first rank. The job's own threads never wait for them.
Whatever goes wrong in them ends in a note, and the job runs as it would without us.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import astuple
from functools import partial
from typing import Any

import torch.distributed as dist

from hostlib.torch.compressed_groups import CompressedGroups, RankDirection
from hostlib.torch.exchange import Exchange, ExchangeError
from hostlib.torch.iterations import Iteration
from hostlib.torch.leader import Leader, Row
from hostlib.torch.levels import Levels
from hostlib.torch.lines import iteration_line, registered_line
from hostlib.torch.observation import Observation
from hostlib.torch.process_groups import GroupWatch
from hostlib.torch.recorder import Recorder
from hostlib.torch.report import RankReport
from hostlib.torch.settings import Settings
from hostlib.torch.statistics import State, Statistics

_LOG = logging.getLogger("hostlib.torch")

_LOOK_S, _FIRST_LOOK_S = 0.25, 0.05
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S, _PAUSES_GROW_BY = 0.01, 0.1, 1.2
"""Between two looks at what others have said: short where one has just spoken, as an answer may come soon."""
_COMPLETES_S = 0.001
"""So precisely it is measured when a collective has ended."""
_RETRY_S = 2.0
_JOINS_WITHIN_S = 60.0
_ENDS_WITHIN_S = 3.0
_FOLLOWS_WITHIN_S = 5.0
"""So much later than the first of them all ranks leave their group."""
_LEAVES_WITHIN_S = 0.5
"""So long the job waits at most, twice, before it destroys the default process group."""


class Session:
    """One process of a job, from ``attach`` to its end.

    Args:
        settings: The job's name, and where the controller is.
        attachment: How many sessions this process has had before, which is the same number in all ranks.
    """

    def __init__(self, settings: Settings, attachment: int = 0) -> None:
        self.settings = settings
        self._attachment = attachment
        self._is_over = threading.Event()
        self._has_group = threading.Event()
        self._has_spoken = threading.Event()
        self._pause_s = _LONGEST_PAUSE_S
        self._is_destroyed = False
        self._state, self._note = State.WAITING, ""
        self._rank: int | None = None
        self._epoch = self._epoch_spoken_of = 0
        self._leader: Leader | None = None
        self._exchange: Exchange | None = None
        self._levels = Levels()
        self.groups = GroupWatch(self._enter, self._leave, lambda: self._levels.most_urgent)
        self.recorder = Recorder()
        self._compressed = CompressedGroups()
        self._observation = Observation(
            self.recorder, self.groups, settings.profile_iterations, self._compressed, settings.trace_folder
        )
        self.recorder.start_profiling()
        if dist.is_initialized():
            self._has_group.set()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=f"trainyard-{name}", daemon=True)
            for name, work in (("observe", self._observe), ("speak", self._speak))
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the threads, withdraw the job, and observe no more."""
        self._is_over.set()
        self._has_group.set()
        self._has_spoken.set()
        self.recorder.has_stepped.set()
        for thread in self._threads:
            thread.join(_ENDS_WITHIN_S)
        if self._exchange is not None:
            self._exchange.leave(_ENDS_WITHIN_S)
            for thread in self._threads:
                thread.join(_ENDS_WITHIN_S)
        self._compressed.release()
        self.groups.close()
        self.recorder.close()

    def abandon(self) -> None:
        """Do nothing any more, in a forked child, which has none of the threads."""
        self.recorder.close()
        self.groups.close()

    def statistics(self) -> Statistics:
        """Return what the network has done so far."""
        observed, levels = self._observation, self._levels
        sent_bytes, retransmissions = levels.counters()
        return Statistics(
            state=self._state,
            job=self.settings.job,
            rank=self._rank,
            note=self._note,
            iterations=observed.num_iterations,
            collectives=self.recorder.num_collectives,
            plan_number=levels.plan_number,
            levels=levels.of_groups,
            iteration_s=observed.iteration_s,
            iteration_before_s=levels.iteration_before_s,
            compute_s=observed.compute_s,
            sent_bytes=sent_bytes,
            retransmissions=retransmissions,
            ignored_directions=0 if self._leader is None else self._leader.ignored_directions,
        )

    # ---- threads ----------------------------------------------------------------------------------------------------

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except Exception:
            _LOG.exception("job %s goes on as it would without Trainyard", self.settings.job)
            self._state, self._note = State.PLAIN, "the host library has failed"
            self.recorder.close()

    def _observe(self) -> None:
        """Take what was recorded, until the end."""
        while not self._is_over.is_set():
            if self.recorder.is_profiling:
                self._watch_completions()
            else:
                self._is_over.wait(_LOOK_S)
            if self.recorder.failure is not None:
                raise self.recorder.failure
            iterations = self._observation.look()
            if not iterations:
                continue
            if self.settings.prints_iterations and self._rank == 0:
                self._print(iterations)
            if self._observation.has_reports:
                self._has_spoken.set()
            if self._leader is not None:
                self._leader.note_iteration(self._observation.num_iterations, self._compressed.to_tell())
            self._compressed.pass_on()

    def _print(self, iterations: Sequence[Iteration]) -> None:
        first = self._observation.num_iterations - len(iterations)
        for number, iteration in enumerate(iterations, start=first):
            print(iteration_line(number, iteration, time.perf_counter_ns()), file=sys.stderr, flush=True)

    def _watch_completions(self) -> None:
        """Note when collectives end, to the end of a step or for a moment."""
        until_s = time.monotonic() + _LOOK_S
        while not self.recorder.has_stepped.wait(_COMPLETES_S) and time.monotonic() < until_s:
            self.recorder.note_completed()
        self.recorder.has_stepped.clear()

    def _speak(self) -> None:
        """Speak with the other ranks, for as long as each default process group is there."""
        while not self._is_over.is_set():
            self._has_group.wait()
            self._has_group.clear()
            self._epoch_spoken_of = self._epoch
            # The first group is made a moment before it is the default one.
            while not dist.is_initialized() and not self._is_over.wait(_FIRST_LOOK_S):
                pass
            try:
                if not self._is_leaving and dist.get_world_size() > 1:
                    self._converse()
            except Exception as error:
                if self._is_leaving:
                    continue  # the group was destroyed meanwhile
                if not isinstance(error, ExchangeError):
                    raise
                if self._leaves_soon():
                    continue  # another rank was first, and the store has ended with its group
                self._say(State.PLAIN, f"the ranks cannot speak with each other: {error}")

    def _converse(self) -> None:
        self._rank = dist.get_rank()
        exchange = self._join()
        self._levels.rendezvous_port = self._observation.rendezvous_port = exchange.port
        self._observation.begin(self._rank)
        self._state = State.PROFILING
        if self._rank == 0:
            self._lead(exchange)
        else:
            self._follow(exchange)

    def _join(self) -> Exchange:
        """Reach the other ranks. Their store may be gone already, where they have destroyed the group before us."""
        restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        start = f"{restart}-{self._attachment}-{self._epoch_spoken_of}"
        until_s = time.monotonic() + _JOINS_WITHIN_S
        while True:
            self._exchange = exchange = Exchange(dist.get_rank(), dist.get_world_size(), start)
            try:
                if self._is_leaving:  # before there was this exchange to leave
                    raise ExchangeError("this rank leaves")
                exchange.join()
                return exchange
            except ExchangeError:
                if self._is_leaving or time.monotonic() > until_s:
                    raise
            self._is_over.wait(_LONGEST_PAUSE_S)

    def _pause(self) -> None:
        """Wait until this rank has something to say, or others may have."""
        if self._has_spoken.wait(self._pause_s):
            self._has_spoken.clear()
            self._pause_s = _SHORTEST_PAUSE_S
        else:
            self._pause_s = min(_PAUSES_GROW_BY * self._pause_s, _LONGEST_PAUSE_S)

    @property
    def _is_leaving(self) -> bool:
        return self._is_over.is_set() or self._is_group_gone

    @property
    def _is_group_gone(self) -> bool:
        return self._is_destroyed or self._epoch != self._epoch_spoken_of

    def _leaves_soon(self) -> bool:
        """Wait a moment for this rank to leave; return whether it does."""
        until_s = time.monotonic() + _FOLLOWS_WITHIN_S
        while not self._is_leaving and time.monotonic() < until_s:
            self._is_over.wait(_FIRST_LOOK_S)
        return self._is_leaving

    def _lead(self, exchange: Exchange) -> None:
        if not self.settings.controllers:
            self._say(State.PLAIN, "no controller is named: set TRAINYARD_CONTROLLER")
            exchange.tell({"end": self._note})
            return
        leader = Leader(self.settings, partial(self._tell, exchange), self._remark)
        try:
            number = 0
            while not self._is_leaving:
                self._levels.mark_rendezvous()
                self._observation.send_report(exchange)
                reports = exchange.reports(number)
                if reports is not None:
                    self._register(leader, [RankReport.from_json(text) for text in reports])
                    number += 1
                self._look_at(leader)
                self._pause()
            if not self._is_group_gone:  # where it is, its store is going
                exchange.tell({"end": ""})
        finally:
            self._leader = None
            leader.close()

    def _register(self, leader: Leader, reports: Sequence[RankReport]) -> None:
        self._state = State.REGISTERING
        while not self._is_leaving and not leader.register(reports):
            self._is_over.wait(_RETRY_S)
        self._leader = leader
        self._state = State.PLAIN if leader.template is None else State.REGISTERING

    def _look_at(self, leader: Leader) -> None:
        if refusal := leader.refusal():
            self._say(State.REGISTERING, f"the controller refuses the job: {refusal}")
        elif leader.is_acknowledged():
            self._state, self._note = State.REGISTERED, ""

    def _tell(
        self, exchange: Exchange, plan_number: int, rows: Sequence[Row], directions: Sequence[RankDirection]
    ) -> None:
        """Tell all ranks the levels of a Plan, and what they may count on; this one as well."""
        try:
            exchange.tell({"plan": plan_number, "rows": rows, "directions": list(map(astuple, directions))})
        except ExchangeError:
            return  # the job is ending
        is_first = self._levels.plan_number is None
        self._levels.apply(plan_number, [row for row in rows if row[0] == self._rank], self._observation.iteration_s)
        self._compressed.direct([each for each in directions if each.rank == self._rank])
        if is_first:
            said = registered_line(self.settings.job, self.settings.controllers, self._levels.of_groups)
            print(said, file=sys.stderr, flush=True)

    def _follow(self, exchange: Exchange) -> None:
        while not self._is_leaving:
            self._levels.mark_rendezvous()
            self._observation.send_report(exchange)
            message = exchange.hear()
            if message is None:
                self._pause()
                continue
            if "end" in message:
                if message["end"]:
                    self._state, self._note = State.PLAIN, message["end"]  # the first rank has said it
                return
            own = [tuple(row) for row in message["rows"] if row[0] == self._rank]
            self._levels.apply(message["plan"], own, self._observation.iteration_s)
            directions = [RankDirection(*each) for each in message["directions"]]
            self._compressed.direct([each for each in directions if each.rank == self._rank])
            self._state = State.REGISTERED

    def _enter(self) -> None:
        """A process group was made. The first one becomes the default one, a moment later."""
        self._is_destroyed = False
        self._has_group.set()

    def _leave(self) -> None:
        """The default process group will be destroyed: the ranks need not speak any more.

        All of them destroy it equally often, however quickly, so the count tells one group from the next.
        """
        self._is_destroyed = True
        self._epoch += 1
        if self._exchange is not None:
            self._exchange.leave(_LEAVES_WITHIN_S)
        self._levels.counters()  # for the last time that its connections are there

    def _remark(self, note: str) -> None:
        if not self._is_leaving:
            self._say(self._state, note)

    def _say(self, state: State, note: str) -> None:
        """Say something once."""
        if note != self._note:
            _LOG.warning("job %s: %s", self.settings.job, note)
        self._state, self._note = state, note
