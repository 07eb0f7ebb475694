"""What the program of a job has done, as it reports it."""

from experiments.scenarios.timeline import UNKNOWN, Timeline
from workloads.replay import CommunicationInterval, ComputeInterval, Iteration, JobHistory, ProfiledInterval
from workloads.task_graph import GroupTransfer


class ProgramHistory(JobHistory):
    """The history of a job whose own program runs: it reports the end of each iteration, and how long it took.

    Where it does not report more, an iteration computes for as long as the job's description says, from its beginning,
    and communicates in the rest.
    """

    def iteration_ended(self, end_s: float, took_s: float, timeline: Timeline = UNKNOWN) -> None:
        """Record an iteration."""
        start_s = max(
            end_s - took_s, self.iterations[-1].end_s if self.iterations else self.job.specification.arrival_s
        )
        number = len(self.iterations)
        graph, hosts = self.job.graph, self.job.hosts
        computed_until_s = min(end_s, start_s + graph.computing_host_seconds / len(hosts))
        spans = [(start_s + begin_s, min(end_s, start_s + until_s)) for begin_s, until_s in timeline.computed]
        self.iterations.append(Iteration(number, start_s, end_s))
        self.computing += [
            ComputeInterval("compute", hosts, number, *span) for span in spans or [(start_s, computed_until_s)]
        ]
        self.profiled += [
            ProfiledInterval(each.name, number, start_s + each.begin_s, start_s + each.end_s)
            for each in timeline.profiled
        ]
        sent = [(task.group, graph.size_bytes(task)) for task in graph.tasks if isinstance(task, GroupTransfer)]
        self.communicating += [
            CommunicationInterval(each.name, number, start_s + each.begin_s, start_s + each.end_s, each.size_bytes)
            for each in timeline.collectives
        ] or [CommunicationInterval(group, number, computed_until_s, end_s, size_bytes) for group, size_bytes in sent]
