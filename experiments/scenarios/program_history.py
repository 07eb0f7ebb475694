"""What the program of a job has done, as it reports it."""

from workloads.replay import CommunicationInterval, ComputeInterval, Iteration, JobHistory
from workloads.task_graph import GroupTransfer


class ProgramHistory(JobHistory):
    """The history of a job whose own program runs: it reports the end of each iteration, and how long it took.

    An iteration computes for as long as the job's description says, from its beginning, and communicates in the rest.
    """

    def iteration_ended(self, end_s: float, took_s: float) -> None:
        """Record an iteration."""
        start_s = max(
            end_s - took_s, self.iterations[-1].end_s if self.iterations else self.job.specification.arrival_s
        )
        number = len(self.iterations)
        computed_s = self.job.graph.computing_host_seconds / len(self.job.hosts)
        computed_until_s = min(end_s, start_s + computed_s)
        graph = self.job.graph
        sent = [(task.group, graph.size_bytes(task)) for task in graph.tasks if isinstance(task, GroupTransfer)]
        self.iterations.append(Iteration(number, start_s, end_s))
        self.computing.append(ComputeInterval("compute", self.job.hosts, number, start_s, computed_until_s))
        self.communicating += [
            CommunicationInterval(group, number, computed_until_s, end_s, size_bytes) for group, size_bytes in sent
        ]
