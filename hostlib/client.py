"""Client for asyncio: keeps the controller informed about training jobs and receives directives."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from ipaddress import IPv4Address
from types import TracebackType
from typing import Self, TypeVar

from hostlib import checks
from hostlib.addresses import unique_addresses
from hostlib.connection import Connection
from hostlib.credentials import Credentials
from hostlib.errors import ControllerError, RefusalReason, RefusedError, UnreachableError
from hostlib.job_session import Clock, JobSession, WallClock
from hostlib.messages import MAX_TASK_GRAPH_BYTES, task_graph_to_wire
from hostlib.reachability import Reachability
from hostlib.task_graph import TaskGraph
from hostlib.types import (
    Directives,
    FlowGroup,
    FlowGroupAssignments,
    GroupInstance,
    Job,
    Nic,
    NicPair,
    PathLoad,
    Profile,
    Sent,
)

_LOG = logging.getLogger(__name__)

_FAREWELL_S = 1.0
_RETRY_S = 0.5

_Answer = TypeVar("_Answer")


class Client:
    """Registers jobs with a controller and follows its directives.

    ::

        import asyncio
        from hostlib import Client, Flow, FlowGroup, Job, Nic, Profile

        async def main() -> None:
            job = Job("llama", hosts=("h0", "h1"), gpus=16, profile=Profile(compute_s=0.5, comm_start=0.4, work=8.0))
            gradients = FlowGroup("gradients", (Flow(Nic("h0"), Nic("h1"), size_bytes=1_000_000_000),))
            async with Client("controller:4790") as client:
                client.register_job(job)
                client.register_flow_groups(job.name, [gradients])
                async for directives in client.directives(job.name):
                    for flow in directives.flows:
                        print(flow.source_port, flow.level, flow.path)

        asyncio.run(main())

    Calls that report something return at once. They raise ValueError for what no controller could accept, and nothing
    else. Delivery happens in the background and is repeated after every loss; ``acknowledged`` waits for it. Leases are
    renewed by ``clock``. A refused job keeps running without the controller; ``refusal`` has the reason. The log has
    one warning where no controller can be reached, and one line when it answers again.

    ``address`` is HOST:PORT or unix:/PATH, or several of them, of which the client finds the active controller. Jobs
    belong to whoever knows ``owner_token`` (None: a random one); the processes of one job share it. ``credentials`` are
    those of the environment by default. Raises ValueError for an address that is neither, and for credentials that
    cannot be used.
    """

    def __init__(
        self,
        address: str | Sequence[str],
        owner_token: str | None = None,
        clock: Clock | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self.owner_token = secrets.token_hex(16) if owner_token is None else checks.name("owner_token", owner_token)
        self._addresses = unique_addresses(address)
        self._credentials = credentials or Credentials.from_environment()
        for each in self._addresses:
            self._credentials.check(each)
        self._reachability = Reachability(self._addresses)
        self._clock = clock or WallClock()
        self._sessions: dict[str, JobSession] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._farewells: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._connection = Connection(self._addresses, self.owner_token, credentials=self._credentials)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection within about a second. The leases of jobs that have not deregistered run out."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        if self._farewells:
            await asyncio.wait(self._farewells)
        for session in self._sessions.values():
            await session.end()
        await self._connection.close()

    def register_job(self, job: Job) -> None:
        """Register a job and keep its lease. Raises ValueError if another job has that name in this client."""
        known = self._sessions.get(checks.instance("job", job, Job).name)
        if known is None:
            self._sessions[job.name] = session = JobSession(job, self._clock, self._reachability)
            self._running[job.name] = running = asyncio.create_task(session.run(self._connection))
            running.add_done_callback(partial(_note_end, session))
        elif (known.job.hosts, known.job.gpus) != (job.hosts, job.gpus):
            raise ValueError(f"another job is registered as {job.name!r}")

    def register_flow_groups(
        self, job: str, flow_groups: Sequence[FlowGroup], task_graph: TaskGraph | None = None
    ) -> None:
        """Register the flow groups that every iteration of a job repeats, and what an iteration does with them.

        ``task_graph`` sends all flows of the job, also those of groups that were registered before; it replaces the
        one that was given with them. Without it, new groups drop that one, which does not send them.
        """
        groups = checks.items("flow_groups", flow_groups, FlowGroup)
        self._session(job).add_flow_groups(groups, _checked(task_graph))

    def start_flow_groups(
        self, job: str, flow_groups: Sequence[str], iteration: int, sent: Mapping[str, Sent] | None = None
    ) -> None:
        """Report that flow groups of an iteration start to send.

        ``sent`` says what those send that can send less than they registered, as compressed gradients; it holds until
        it is said anew. The registered sizes stay known: the controller tells such a group what it may count on.
        """
        names = checks.items("flow_groups", flow_groups, str)
        self._session(job).note_instances(
            {name: GroupInstance(iteration, sent=(sent or {}).get(name)) for name in names}
        )

    def end_flow_groups(self, job: str, flow_groups: Sequence[str], iteration: int) -> None:
        """Report that all flows of these groups have arrived. Starting the next iteration implies it."""
        names = checks.items("flow_groups", flow_groups, str)
        self._session(job).note_instances(dict.fromkeys(names, GroupInstance(iteration, has_ended=True)))

    def report_profile(self, job: str, profile: Profile, task_graph: TaskGraph | None = None) -> None:
        """Replace the profile of a job, and its task graph if there is another one."""
        self._session(job).report_profile(checks.instance("profile", profile, Profile), _checked(task_graph))

    def deregister(self, job: str) -> None:
        """Withdraw a job with its flow groups. A job that is not registered here is ignored."""
        session = self._sessions.pop(checks.instance("job", job, str), None)
        if session is not None:
            farewell = asyncio.create_task(self._withdraw(session, self._running.pop(job)))
            self._farewells.add(farewell)
            farewell.add_done_callback(self._farewells.discard)

    async def directives(self, job: str) -> AsyncIterator[Directives]:
        """Yield the newest directives of a job as they arrive, until it deregisters or the client closes."""
        session = self._session(job)
        directives = None
        while (directives := await session.next_directives(directives)) is not None:
            yield directives

    def newest_directives(self, job: str) -> Directives | None:
        """Return the newest directives of a job; None before the first ones."""
        return self._session(job).newest

    def five_tuples(self, job: str) -> FlowGroupAssignments:
        """Return the 5-tuples of acknowledged flow groups. Flows keep them while no controller answers."""
        return dict(self._session(job).assignments)

    def refusal(self, job: str) -> RefusedError | None:
        """Return why a job is not registered: the controller refuses it, or the library failed; None if neither."""
        return self._session(job).refusal

    async def acknowledged(self, job: str, timeout_s: float) -> bool:
        """Wait until the controller has acknowledged everything reported about a job; return False on time-out."""
        timeout_s = checks.number("timeout_s", timeout_s)
        session = self._session(job)
        try:
            async with asyncio.timeout(timeout_s):
                await session.acknowledged()
        except TimeoutError:
            return False
        return session.is_acknowledged

    async def lost(self, job: str) -> None:
        """Wait until the controller that knew a job is gone or has forgotten it."""
        await self._session(job).lost()

    async def locate_nics(self, addresses: Sequence[IPv4Address], timeout_s: float) -> tuple[Nic | None, ...] | None:
        """Ask which NIC has each address, in their order: None in the place of one that no NIC of the fabric has.

        It asks again while no controller answers, for ``timeout_s`` seconds; then it returns None. It needs no job.
        Raises RefusedError if the controller refuses, with the reason UNSUPPORTED if it is too old for the call.
        """
        addresses = checks.items("addresses", addresses, IPv4Address)
        return await self._answered(lambda: self._connection.locate_nics(addresses), timeout_s)

    async def path_loads(self, pairs: Sequence[NicPair], timeout_s: float) -> tuple[PathLoad, ...] | None:
        """Ask how loaded the paths between NICs are, in the order of the pairs.

        It waits and refuses as ``locate_nics`` does, and needs no job either.
        """
        pairs = checks.items("pairs", pairs, NicPair)
        return await self._answered(lambda: self._connection.path_loads(pairs), timeout_s)

    async def _answered(self, ask: Callable[[], Awaitable[_Answer]], timeout_s: float) -> _Answer | None:
        """Ask until a controller answers, but for so many seconds."""
        timeout_s = checks.number("timeout_s", timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._asked(ask)
        except TimeoutError:
            return None

    async def _asked(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        while True:
            try:
                answer = await ask()
            except UnreachableError as error:
                self._reachability.note_silence(str(error), self._clock.now_s())
            except RefusedError:
                self._reachability.note_answer()
                raise
            except ValueError as error:
                raise RefusedError(RefusalReason.FAILED, f"the host library failed: {error}") from error
            else:
                self._reachability.note_answer()
                return answer
            await asyncio.sleep(_RETRY_S)

    def _session(self, job: str) -> JobSession:
        if checks.instance("job", job, str) not in self._sessions:
            raise ValueError(f"job {job!r} is not registered")
        return self._sessions[job]

    async def _withdraw(self, session: JobSession, running: asyncio.Task[None]) -> None:
        """Deregister once; if no controller answers, the lease runs out."""
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await self._connection.deregister(session.job.name)
        except (ControllerError, TimeoutError):
            pass
        except Exception:
            _LOG.exception("job %s: could not be withdrawn, so its lease will run out", session.job.name)
        finally:
            await session.end()


def _checked(task_graph: TaskGraph | None) -> TaskGraph | None:
    if task_graph is not None:
        size_bytes = task_graph_to_wire(checks.instance("task_graph", task_graph, TaskGraph)).ByteSize()
        if size_bytes > MAX_TASK_GRAPH_BYTES:
            raise ValueError(f"task_graph: takes {size_bytes:,} bytes, a message has room for {MAX_TASK_GRAPH_BYTES:,}")
    return task_graph


def _note_end(session: JobSession, running: asyncio.Task[None]) -> None:
    """Show an error that has ended a session; nobody awaits its task."""
    error = None if running.cancelled() else running.exception()
    if error is not None:
        session.record_failure(error)
