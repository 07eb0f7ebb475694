"""The host library's client for asyncio: what a training job says to the controller, and is told back."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Self

from hostlib.channels import addresses_of
from hostlib.clock import Clock, WallClock
from hostlib.connection import Connection
from hostlib.errors import ControllerError, RefusedError
from hostlib.session import JobSession
from hostlib.types import Directives, FlowGroup, FlowGroupAssignments, GroupInstance, Job, Profile

_FAREWELL_S = 1.0


class Client:
    """Keeps the controller at ``address`` informed about jobs, whether it is there or not.

    That is ``host:port``, or those of several controllers of which one leads: whichever does is found.

    Calls that tell it something return at once and raise nothing but ValueError, for what no controller could accept.
    What they say is delivered in the background, again after every loss; leases are renewed by ``clock``. A job that is
    refused runs on without the controller; ``refusal`` says why. Jobs belong to whoever knows ``owner_token`` (None: a
    random one), which the processes of one job therefore share. An async context manager::

        async with Client("controller:4790") as client:
            client.register_job(job)
            client.register_flow_groups(job.name, flow_groups)
            async for directives in client.directives(job.name):
                ...
    """

    def __init__(
        self, address: str | Sequence[str], owner_token: str | None = None, clock: Clock | None = None
    ) -> None:
        self.owner_token = secrets.token_hex(16) if owner_token is None else owner_token
        self._addresses = addresses_of(address)
        self._clock = clock or WallClock()
        self._sessions: dict[str, JobSession] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._farewells: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._connection = Connection(self._addresses, self.owner_token)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection, within a second or so; jobs that have not deregistered have their leases end."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        if self._farewells:
            await asyncio.wait(self._farewells)
        for session in self._sessions.values():
            await session.end()
        await self._connection.close()

    def register_job(self, job: Job) -> None:
        """Make a job known and keep its lease. Raises ValueError where another job has the name here."""
        known = self._sessions.get(job.name)
        if known is None:
            self._sessions[job.name] = session = JobSession(job, self._clock)
            self._running[job.name] = asyncio.create_task(session.run(self._connection))
        elif (known.job.hosts, known.job.gpus) != (job.hosts, job.gpus):
            raise ValueError(f"another job is registered as {job.name!r}")

    def register_flow_groups(self, job: str, flow_groups: Sequence[FlowGroup]) -> None:
        """Give the template of flow groups that a job's iterations repeat."""
        self._session(job).add_flow_groups(flow_groups)

    def start_flow_groups(self, job: str, flow_groups: Sequence[str], iteration: int) -> None:
        """Flow groups of an iteration begin to send."""
        self._session(job).note_instances(flow_groups, GroupInstance(iteration))

    def end_flow_groups(self, job: str, flow_groups: Sequence[str], iteration: int) -> None:
        """All flows of these groups have arrived in an iteration; the start of the next one says so too."""
        self._session(job).note_instances(flow_groups, GroupInstance(iteration, has_ended=True))

    def report_profile(self, job: str, profile: Profile) -> None:
        """Replace what the job is known to compute in one iteration."""
        self._session(job).report_profile(profile)

    def deregister(self, job: str) -> None:
        """Withdraw a job with its flow groups; nothing happens where it is not registered here."""
        session = self._sessions.pop(job, None)
        if session is not None:
            farewell = asyncio.create_task(self._withdraw(session, self._running.pop(job)))
            self._farewells.add(farewell)
            farewell.add_done_callback(self._farewells.discard)

    async def directives(self, job: str) -> AsyncIterator[Directives]:
        """A job's newest directives, whenever there are newer ones, until it deregisters or the client is closed."""
        session = self._session(job)
        directives = None
        while (directives := await session.next_directives(directives)) is not None:
            yield directives

    def newest_directives(self, job: str) -> Directives | None:
        """A job's newest directives; None where none have ever come."""
        return self._session(job).newest

    def five_tuples(self, job: str) -> FlowGroupAssignments:
        """5-tuples of the flow groups that a controller has acknowledged; flows keep theirs when it goes away."""
        return dict(self._session(job).assignments)

    def refusal(self, job: str) -> RefusedError | None:
        """Why the controller refuses a job; None where it does not."""
        return self._session(job).refusal

    async def acknowledged(self, job: str, timeout_s: float) -> bool:
        """Wait until the controller has acknowledged all that was said of a job; False where it has not in time."""
        session = self._session(job)
        try:
            async with asyncio.timeout(timeout_s):
                await session.acknowledged()
        except TimeoutError:
            return False
        return session.is_acknowledged

    async def lost(self, job: str) -> None:
        """Wait until the controller that knew a job is found to be gone, or to know it no longer."""
        await self._session(job).lost()

    def _session(self, job: str) -> JobSession:
        if job not in self._sessions:
            raise ValueError(f"job {job!r} is not registered")
        return self._sessions[job]

    async def _withdraw(self, session: JobSession, running: asyncio.Task[None]) -> None:
        """Say it once; a controller that is away lets the lease end."""
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        with contextlib.suppress(ControllerError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await self._connection.deregister(session.job.name)
        await session.end()
