"""What profiling has come to: what is known of jobs that tell nothing of themselves, and which one is measured now."""

from controller.profiling.measured import Measured


class ProfilingResults:
    """By job, what was measured last. ``profiled`` is the job that is to have a level for itself."""

    def __init__(self) -> None:
        self.profiled: str | None = None
        self._measured: dict[str, Measured] = {}

    def measured(self, job: str) -> Measured | None:
        """What is known of a job; None where it is not known yet."""
        return self._measured.get(job)

    def note(self, job: str, measured: Measured) -> None:
        """A job has been measured."""
        self._measured[job] = measured

    def forget(self, job: str) -> None:
        """A job has left, or tells its profile itself."""
        self._measured.pop(job, None)
