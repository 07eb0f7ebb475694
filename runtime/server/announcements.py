"""What programs send between islands, told to the controller of the network before it is sent.

The flow groups of a program are registered once, as a job. Each run announces their instances when it is dispatched, so
before what is sent has been computed (``instances``). The controller answers with levels and source ports, which go to
the hosts. Nothing waits for it: while it is away, or refuses a job, hosts send as they were told last, or at no level
from any port.

A job is withdrawn, and its connections are closed, when its client ends, when slices have moved, and when the program
has not run for a while. Its next run registers it anew.
"""

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Protocol
from weakref import WeakSet

from hostlib import Client, Directives, Job, Nic
from runtime import messages
from runtime.network.names import plain_name
from runtime.network.transfers import Template, template
from runtime.server.accounts import Account
from runtime.server.flow_connections import FlowConnections, fit
from runtime.server.hosts import Host
from runtime.server.instances import Instances
from runtime.server.plans import PlannedProgram
from runtime.server.registrations import NetworkEnd, Registration

_LOG = logging.getLogger(__name__)

_LOOKS_EVERY_S = 1.0
_CHANGE = 0.1
"""By how much functions must take longer or shorter than was told last, to be reported."""
_MUCH = 1.0
"""By how much they must, against what the job was registered with, so that it is registered anew."""
_IDLE_S = 60.0
"""A program that has not run for so long is withdrawn."""
_KEPT = 20_000
"""Announcements that the server remembers for traces."""


class Running(Protocol):
    """An execution, as it is announced (``runtime.server.executions.Execution``)."""

    @property
    def number(self) -> int:
        """By which hosts know it."""

    @property
    def account(self) -> Account:
        """Whose it is."""

    @property
    def plan(self) -> PlannedProgram:
        """What it runs."""


class Announcements:
    """Registers programs with the controllers of a network, announces their runs, and tells hosts the levels.

    Args:
        controllers: Their addresses.
        hosts: Those that are connected, by number.

    Attributes:
        client: By which they are reached, as long as this is open.
    """

    def __init__(self, controllers: Sequence[str], hosts: Mapping[int, Host]) -> None:
        self.client = Client(controllers)
        self._hosts = hosts
        self._programs: dict[PlannedProgram, Registration] = {}
        self._others: WeakSet[PlannedProgram] = WeakSet()
        """Programs that send nothing over the network, or too much."""
        self._without_room: WeakSet[PlannedProgram] = WeakSet()
        """Programs that try again once connections of others have been closed."""
        self._connections = FlowConnections(hosts)
        self._epoch = -1
        self._of_execution: dict[int, Registration] = {}
        self._numbers = count()
        self._tag = secrets.token_hex(4)
        """Tells its jobs from those of other servers, which name clients and programs likewise."""
        self._is_closed = False
        self._looking: asyncio.Task[None] | None = None
        self._announced: deque[tuple[int, str, float]] = deque(maxlen=_KEPT)

    async def open(self) -> None:
        """Begin. The controllers are reached in the background."""
        await self.client.__aenter__()
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """Withdraw all jobs, as far as a controller answers within about a second."""
        if self._looking is not None:
            self._looking.cancel()
        self._is_closed = True
        self._retire(tuple(self._programs.values()))
        await self.client.close()

    def start(self, execution: Running, epoch: int) -> None:
        """Announce a run that is going to be dispatched."""
        if self._is_closed:
            return
        if epoch != self._epoch:
            self._epoch = epoch
            self._retire(tuple(self._programs.values()))
        plan = execution.plan
        if plan in self._others or plan in self._without_room:
            return
        registration = self._programs.get(plan) or self._opened(execution.account, plan)
        if registration is not None:
            self._programs[plan] = registration
            self._of_execution[execution.number] = registration
            registration.instances.start(execution.number)
            self._register_if_ready(registration)

    def end(self, number: int) -> None:
        """Note that a run has ended, or was aborted."""
        registration = self._of_execution.pop(number, None)
        if registration is not None:
            registration.instances.end(number)
            registration.ended_s, registration.has_run = time.monotonic(), True
            self._register_if_ready(registration)
            if registration.is_over and not registration.instances.running:
                self._close_flows(registration)

    def stall(self, host: int, message: messages.RunStalled) -> None:
        """Note that a run waits for memory on a host, or goes on there."""
        registration = self._of_execution.get(message.execution)
        if registration is not None:
            registration.instances.stall(message.execution, host, is_stalled=message.is_stalled)

    def take(self, host: int, message: messages.FlowSteered) -> None:
        """Take a host's word that a flow cannot send from the port that it was told to, or does after all."""
        self._connections.take(host, message)

    def drop(self, account: Account) -> None:
        """Withdraw all jobs of a client that is gone."""
        self._retire([each for each in self._programs.values() if each.account is account])

    def shown(self, *, trace: bool) -> dict[str, Any]:
        """Return the jobs, for people, and which runs were announced when if ``trace`` says so."""
        jobs = [
            {
                "job": each.job,
                "client": each.account.label,
                "program": each.plan.program.name,
                "flows": len(each.flows),
                "unsteered": len(each.unsteered),
                "plan": None if (newest := self.client.newest_directives(each.job)) is None else newest.plan_number,
                "refusal": None if (refusal := self.client.refusal(each.job)) is None else str(refusal),
            }
            for each in self._programs.values()
            if each.job is not None
        ]
        return {"jobs": jobs, "announced": list(self._announced) if trace else []}

    def _opened(self, account: Account, plan: PlannedProgram) -> Registration | None:
        """Let hosts open connections for the flows of a program; None where it has none, or there is no room."""
        made = self._told_of(plan)
        if made is None:
            self._others.add(plan)
            return None
        registration = Registration(account, plan, *made, Instances(self.client, self._note_announced), self._numbers)
        if not self._make_room_for(registration):
            _LOG.warning("%s is not ranked: it has %d flows", plan.program.name, len(registration.flows))
            fits_alone = fit([registration])
            (self._without_room if fits_alone else self._others).add(plan)
            return None
        self._connections.open(registration)
        return registration

    def _told_of(self, plan: PlannedProgram) -> tuple[Template, dict[int, NetworkEnd]] | None:
        """Return what the controller is told of a program, and where its hosts are; None where that is nothing."""
        ends = {}
        for number in plan.hosts:
            host = self._hosts[number]
            if host.network_host is None:
                return None
            port = int(host.network_address.rpartition(":")[2])
            ends[number] = NetworkEnd(Nic(host.network_host.name, host.network_host.nic), port)
        try:
            made = template(plan.lowered, _seconds(plan), {number: end.nic for number, end in ends.items()})
        except ValueError as error:
            _LOG.warning("%s is not ranked: %s", plan.program.name, error)
            return None
        return None if made is None else (made, ends)

    def _make_room_for(self, registration: Registration) -> bool:
        """Withdraw programs that do not run, as long as their connections take the room of one that does.

        None is withdrawn where that would not help.
        """
        others = self._connections.registrations
        if not fit({registration, *(each for each in others if each.instances.running)}):
            return False
        while not fit({registration, *self._connections.registrations}):
            idle = [each for each in self._programs.values() if not each.instances.running]
            self._retire([min(idle, key=lambda each: each.ended_s)])
        return True

    def _register_if_ready(self, registration: Registration) -> None:
        """Register a job as soon as it is known how long its functions take."""
        if registration.is_over or self._is_closed or registration.job is not None or not registration.is_ready:
            return
        plan = registration.plan
        name = f"{registration.account.label} {plan.program.name:.100} {self._tag}-{next(self._numbers)}"
        job = plain_name(name)
        try:
            made = template(plan.lowered, _seconds(plan), registration.nics)
            assert made is not None
            registration.adopt(made)
            self.client.register_job(Job(job, made.hosts, made.devices, made.profile))
            self.client.register_flow_groups(job, registration.groups(), made.graph)
        except ValueError as error:
            _LOG.warning("%s is not ranked: %s", name, error)
            self.client.deregister(job)
            self._retire([registration])
            self._others.add(plan)
            return
        registration.job = job
        registration.instances.begin(job, registration.names, registration.pairs)
        registration.following = asyncio.get_running_loop().create_task(self._follow(registration, job))

    def _note_announced(self, execution: int, job: str) -> None:
        self._announced.append((execution, job, time.perf_counter()))

    async def _follow(self, registration: Registration, job: str) -> None:
        async for directives in self.client.directives(job):
            self._rank(registration, directives)

    def _rank(self, registration: Registration, directives: Directives) -> None:
        """Tell hosts how flows send that do so otherwise than before."""
        for host, ranks in registration.take(directives).items():
            if host in self._hosts:
                self._hosts[host].channel.send(messages.RankFlows(tuple(ranks)))

    async def _look(self) -> None:
        """Again and again say what has ended, report what takes another time now, and withdraw what no longer runs."""
        while True:
            await asyncio.sleep(_LOOKS_EVERY_S)
            now_s = time.monotonic()
            over = []
            for registration in tuple(self._programs.values()):
                job = registration.job
                is_idle = not registration.instances.running and registration.ended_s + _IDLE_S < now_s
                if is_idle or not registration.plan.hosts <= self._hosts.keys():
                    over.append(registration)
                elif job is not None:
                    try:
                        self._look_at(registration, job)
                    except Exception:
                        _LOG.exception("%s is not ranked until its next run", job)
                        over.append(registration)
            self._retire([each for each in over if not each.is_over])

    def _look_at(self, registration: Registration, job: str) -> None:
        registration.instances.end_unless_running()
        self._report(registration, job)

    def _report(self, registration: Registration, job: str) -> None:
        """Report what a run does if functions take another time than was told.

        Offsets of flows cannot be reported anew, so where these differ much the next run registers it anew.
        """
        if registration.drift() > _MUCH:
            self._retire([registration])
        elif registration.change() > _CHANGE:
            made = template(registration.plan.lowered, _seconds(registration.plan), registration.nics)
            assert made is not None
            self.client.report_profile(job, made.profile, registration.graph_of(made))
            registration.note_told()

    def _retire(self, registrations: Iterable[Registration]) -> None:
        """Withdraw jobs, and close their connections once nothing runs that sends on them.

        The controller may assign their ports again meanwhile. A flow that is told a port which such a connection has
        still sends from another one, and tries again every second. To withdraw the job later would be worse: what was
        told of it is no longer true.
        """
        for registration in registrations:
            self._withdraw(registration)
            registration.is_over = True
            del self._programs[registration.plan]
            if not registration.instances.running:
                self._close_flows(registration)

    def _withdraw(self, registration: Registration) -> None:
        if registration.job is not None:
            self.client.deregister(registration.job)
            registration.job = None
            registration.instances.withdraw()
        if registration.following is not None:
            registration.following.cancel()
            registration.following = None

    def _close_flows(self, registration: Registration) -> None:
        self._without_room.clear()
        self._connections.close(registration)


def _seconds(plan: PlannedProgram) -> Callable[[int], float]:
    return lambda node: plan.function(node).seconds
