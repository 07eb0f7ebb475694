"""The jobs of a run, on any network: when they compute and send, and the record of it."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from experiments.scenarios.event_queue import (
    PS_PER_S,
    Arrival,
    ComputationEnd,
    ControllerUpdate,
    EventQueue,
    HoldEnd,
    JobEvent,
    LoadSampling,
)
from experiments.scenarios.interfaces import NetworkBackend, Programs
from experiments.scenarios.program_history import ProgramHistory
from experiments.scenarios.run_record import RunRecord
from experiments.scenarios.transfers import IterationEnd, JobEnd, NetworkEvent, TransferEnd
from workloads.events import HostDowntime
from workloads.jobs import TrainingJob
from workloads.perturbations import ComputeJitter
from workloads.replay import Action, HoldIteration, JobReplay, StartComputation, StartTransfer
from workloads.scenario import Scenario

_LOG = logging.getLogger(__name__)

Progress = Callable[[float, float], None]
"""Called with the run's time and the time at which the run is expected to end, both in seconds."""

_SAMPLES = 400
_SHORTEST_SAMPLE_PS = PS_PER_S // 1_000_000


class JobDriver:
    """Makes jobs arrive, compute, send and depart, while the run that owns it advances time.

    ``isolated_s`` is how long an iteration of each job takes with the fabric to itself; ``delay_s`` returns for how
    long a job holds an iteration that could begin at a time. The controller learns what happens to jobs
    ``reaction_delay_s`` later, by a ``ControllerUpdate`` in the queue. Jobs with a command run it where there are
    ``programs``; elsewhere their phases are played.
    """

    def __init__(
        self,
        scenario: Scenario,
        jobs: Sequence[TrainingJob],
        network: NetworkBackend,
        isolated_s: Mapping[str, float],
        delay_s: Callable[[str, float], float],
        programs: Programs | None = None,
    ) -> None:
        self.queue = EventQueue()
        pauses = HostDowntime(scenario.events)
        self._jobs: dict[str, JobReplay | ProgramHistory] = {
            job.name: ProgramHistory(job)
            if programs is not None and programs.runs(job.name)
            else JobReplay(job, partial(delay_s, job.name), ComputeJitter.of(scenario, job.name), pauses)
            for job in jobs
        }
        self.record = RunRecord(list(self._jobs.values()))
        self._network = network
        self._programs = programs
        self._reaction_ps = round(scenario.reaction_delay_s * PS_PER_S)
        self._arrived_ps: dict[str, int] = {}
        self._departed_ps: dict[str, int] = {}
        self._ending: dict[ComputationEnd, list[int]] = {}
        self._update_ps: int | None = None
        self._expected_end_s = max(_expected_end_s(job, isolated_s[job.name]) for job in jobs)
        self._sample_ps = max(_SHORTEST_SAMPLE_PS, round(self._expected_end_s / _SAMPLES * PS_PER_S))

    def begin(self) -> None:
        """Put the jobs' arrivals and the first sample into the queue."""
        for name, job in self._jobs.items():
            self.queue.add(round(job.job.specification.arrival_s * PS_PER_S), Arrival(name))
        self.queue.add(self._sample_ps, LoadSampling())

    @property
    def now_s(self) -> float:
        """The run's time."""
        return self._network.now_ps / PS_PER_S

    @property
    def is_over(self) -> bool:
        """Whether all jobs have departed and the controller knows."""
        return not self._departed_ps and all(job.departed for job in self._jobs.values())

    def handle(self, event: JobEvent) -> None:
        """Let a job act on an event whose time has come; one that has failed does not."""
        job = self._jobs[event.job]
        if job.departed:
            return
        if isinstance(event, Arrival):
            self._arrived_ps[event.job] = self._network.now_ps
            self._schedule_update()
        if isinstance(job, ProgramHistory):
            assert self._programs is not None
            self._programs.start(event.job)
        else:
            self._act(event.job, self._actions(job, event))

    def take(self, events: Iterable[NetworkEvent]) -> None:
        """Let jobs act on what the network has brought: on all that has ended in the same moment at once."""
        ended: dict[str, list[int]] = {}
        for event in events:
            job = self._jobs[event.job]
            match event:
                case _ if job.departed:
                    continue
                case TransferEnd():
                    if event.tardiness_s is not None:
                        instances = self.record.tardiness.setdefault((event.job, event.group), [])
                        instances.append((self.now_s, event.tardiness_s))
                    ended.setdefault(event.job, []).append(event.task)
                case IterationEnd():
                    assert isinstance(job, ProgramHistory)
                    job.iteration_ended(self.now_s - event.ago_s, event.took_s, event.timeline)
                case JobEnd():
                    self._end(job, event.failure)
        for name, tasks in ended.items():
            job = self._jobs[name]
            if not job.departed:
                assert isinstance(job, JobReplay)
                self._act(name, job.finish(tasks, self.now_s))

    def _actions(self, job: JobReplay, event: JobEvent) -> Sequence[Action]:
        match event:
            case Arrival():
                return job.start(max(self.now_s, job.job.specification.arrival_s))
            case ComputationEnd():
                return job.finish(self._ending.pop(event), self.now_s)
            case HoldEnd():
                return job.begin_iteration(self.now_s)

    def _end(self, job: JobReplay | ProgramHistory, failure: str | None) -> None:
        """End a job whose programs are done, or have failed."""
        if failure is not None:
            job.failure = failure
            _LOG.warning("job %s has failed: %s", job.job.name, failure)
        if isinstance(job, JobReplay):
            job.withdraw(self.now_s)
        else:
            job.departed_s = self.now_s
        self._note_departure(job.job.name)

    def sample(self, on_progress: Progress) -> None:
        """Record the loads and report progress."""
        if (sample := self._network.sample_loads()) is not None:
            self.record.loads.append(sample)
        self.queue.add(self._network.now_ps + self._sample_ps, LoadSampling())
        on_progress(self.now_s, max(self.now_s, self._expected_end_s))

    def begin_update(self) -> None:
        """The controller is updated now: what happens to a job at this time needs another update."""
        if self._update_ps == self._network.now_ps:
            self._update_ps = None

    def take_due(self) -> tuple[list[str], list[str]]:
        """Remove and return the arrivals and the departures that the controller is due to learn, in scenario order."""
        until_ps = self._network.now_ps - self._reaction_ps
        return self._take(self._arrived_ps, until_ps), self._take(self._departed_ps, until_ps)

    def _act(self, job: str, actions: Sequence[Action]) -> None:
        """Start what a replay asks for, and note its departure."""
        now_ps = self._network.now_ps
        transfers = []
        for action in actions:
            match action:
                case StartComputation(task, _, ends_at_s):
                    end = ComputationEnd(job, max(now_ps, round(ends_at_s * PS_PER_S)))
                    if end not in self._ending:
                        self._ending[end] = []
                        self.queue.add(end.time_ps, end)
                    self._ending[end].append(task)
                case HoldIteration(until_s):
                    self.queue.add(max(now_ps, round(until_s * PS_PER_S)), HoldEnd(job))
                case StartTransfer():
                    transfers.append(action)
        if transfers:
            self._network.start(job, transfers)
        if self._jobs[job].departed:
            self._note_departure(job)

    def _note_departure(self, job: str) -> None:
        self._departed_ps[job] = self._network.now_ps
        self._schedule_update()

    def _schedule_update(self) -> None:
        """Schedule one update for everything that happens at this time."""
        due_ps = self._network.now_ps + self._reaction_ps
        if self._update_ps != due_ps:
            self._update_ps = due_ps
            self.queue.add(due_ps, ControllerUpdate())

    def _take(self, happened_ps: dict[str, int], until_ps: int) -> list[str]:
        """Remove and return the jobs to which something happened up to a time."""
        names = [name for name in self._jobs if happened_ps.get(name, until_ps + 1) <= until_ps]
        for name in names:
            del happened_ps[name]
        return names


def _expected_end_s(job: TrainingJob, isolated_s: float) -> float:
    specification = job.specification
    if specification.duration_s is not None:
        return specification.arrival_s + specification.duration_s
    assert specification.iterations is not None
    return specification.arrival_s + specification.iterations * isolated_s
