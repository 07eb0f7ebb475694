"""The messages of directives, encoded for all followers of a Plan at once, beside the event loop."""

from collections.abc import Iterable, Mapping

from controller.api.messages import directives_pages
from controller.planning.directives import JobDirectives
from hostlib.wire import trainyard_pb2 as wire
from topologies.fabric import Fabric


class DirectivePages:
    """The messages of the newest directives of jobs that somebody follows."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._pages: Mapping[str, tuple[JobDirectives, tuple[wire.DirectivesResponse, ...]]] = {}

    def prepare(self, newest: Mapping[str, JobDirectives]) -> None:
        """Encode the directives of these jobs, in place of all before; for a thread of its own."""
        self._pages = {
            job: (directives, tuple(directives_pages(directives, self._fabric))) for job, directives in newest.items()
        }

    def of(self, job: str, directives: JobDirectives) -> Iterable[wire.DirectivesResponse]:
        """The messages of a job's directives."""
        prepared_for, pages = self._pages.get(job, (None, ()))
        return pages if prepared_for is directives else directives_pages(directives, self._fabric)
