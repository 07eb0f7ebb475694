"""What programs send between islands, told to the controller of the network before it is sent.

The flow groups of a program are registered once, as a job with the 5-tuples of the connections that hosts have opened
for its flows. Each run announces their instances when it is dispatched, so before what is sent has been computed. The
controller answers with levels, which go to the hosts. Nothing waits for it: while it is away, or refuses a job, hosts
send as they were told last, or at no level.

A job is withdrawn, and its connections are closed, when its client ends, when slices have moved, and when the program
has not run for a while. Its next run registers it anew.
"""

import asyncio
import logging
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Address
from itertools import count
from typing import Any, Protocol
from weakref import WeakSet

from hostlib import Client, Directives, FiveTuple, Job, Nic
from runtime import messages
from runtime.network.transfers import Template, template
from runtime.server.accounts import Account
from runtime.server.hosts import Host
from runtime.server.plans import PlannedProgram
from runtime.server.registrations import Registration

_LOG = logging.getLogger(__name__)

_TCP = 6
_LOOKS_EVERY_S = 1.0
_PAUSE_S = 5e-3
"""Between two announcements of a program: one costs the server as much time as a short run."""
_CHANGE = 0.1
"""By how much functions must take longer or shorter than was told last, to be reported."""
_MUCH = 1.0
"""By how much they must, against what the job was registered with, so that it is registered anew."""
_IDLE_S = 60.0
"""A program that has not run for so long is withdrawn."""
_MOST_CONNECTIONS = 400
"""Of flows that begin or end on one host; ``select`` takes 1,024 descriptors."""
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
    """

    def __init__(self, controllers: Sequence[str], hosts: Mapping[int, Host]) -> None:
        self._client = Client(controllers)
        self._hosts = hosts
        self._programs: dict[PlannedProgram, Registration] = {}
        self._others: WeakSet[PlannedProgram] = WeakSet()
        """Programs that send nothing over the network, or too much."""
        self._without_room: WeakSet[PlannedProgram] = WeakSet()
        """Programs that try again once connections of others have been closed."""
        self._flows: dict[int, Registration] = {}
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
        await self._client.__aenter__()
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """Withdraw all jobs, as far as a controller answers within about a second."""
        if self._looking is not None:
            self._looking.cancel()
        self._is_closed = True
        self._retire(tuple(self._programs.values()))
        await self._client.close()

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
            registration.running.add(execution.number)
            registration.waiting.append(execution.number)
            self._of_execution[execution.number] = registration
            self._advance(registration)

    def end(self, number: int) -> None:
        """Note that a run has ended, or was aborted."""
        registration = self._of_execution.pop(number, None)
        if registration is not None:
            registration.running.discard(number)
            registration.ended_s, registration.has_run = time.monotonic(), True
            if number in registration.waiting:
                registration.waiting.remove(number)
            self._advance(registration)
            if registration.is_over and not registration.running:
                self._close_flows(registration)

    def take(self, message: messages.FlowOpened) -> None:
        """Take the ends of a flow's connection; once those of all flows are known, the job is registered.

        A connection that has broken has other ends when it is opened again. No job may have ends that another one has
        still, so all connections are opened anew with the next run.
        """
        registration = self._flows.get(message.number)
        if registration is None or registration.is_over:
            return
        ends = (IPv4Address(message.address), IPv4Address(message.peer_address))
        five_tuple = FiveTuple(*ends, _TCP, message.port, message.peer_port)
        if registration.five_tuples.setdefault(message.number, five_tuple) != five_tuple:
            self._retire([registration])
        else:
            self._advance(registration)

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
                "plan": None if (newest := self._client.newest_directives(each.job)) is None else newest.plan_number,
                "refusal": None if (refusal := self._client.refusal(each.job)) is None else str(refusal),
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
        registration = Registration(account, plan, *made, self._numbers)
        if not self._make_room_for(registration):
            _LOG.warning("%s is not ranked: it has %d flows", plan.program.name, len(registration.flows))
            fits_alone = _fit([registration])
            (self._without_room if fits_alone else self._others).add(plan)
            return None
        for number, subprogram, hosts in plan.subprograms:
            for host in hosts:
                self._hosts[host].load(number, subprogram, plan.functions)
        for host, flows in registration.flows_by_host.items():
            self._hosts[host].channel.send(messages.OpenFlows(plan.number_of_host[host], tuple(flows)))
        self._flows.update(dict.fromkeys(registration.flows, registration))
        return registration

    def _told_of(self, plan: PlannedProgram) -> tuple[Template, dict[int, Nic]] | None:
        """Return what the controller is told of a program, and the NICs of its hosts; None where that is nothing."""
        nics = {}
        for number in plan.hosts:
            network_host = self._hosts[number].network_host
            if network_host is None:
                return None
            nics[number] = Nic(network_host.name, network_host.nic)
        try:
            made = template(plan.lowered, _seconds(plan), nics)
        except ValueError as error:
            _LOG.warning("%s is not ranked: %s", plan.program.name, error)
            return None
        return None if made is None else (made, nics)

    def _make_room_for(self, registration: Registration) -> bool:
        """Withdraw programs that do not run, as long as their connections take the room of one that does.

        None is withdrawn where that would not help.
        """
        if not _fit({registration, *(each for each in self._flows.values() if each.running)}):
            return False
        while not _fit({registration, *self._flows.values()}):
            idle = [each for each in self._programs.values() if not each.running]
            self._retire([min(idle, key=lambda each: each.ended_s)])
        return True

    def _advance(self, registration: Registration) -> None:
        """Register a job as soon as all is known of it, and announce the runs that wait, but not too often."""
        if registration.is_over or self._is_closed:
            return
        if registration.job is None and registration.is_ready:
            self._register(registration)
        if registration.job is not None and registration.waiting:
            left_s = registration.announced_s + _PAUSE_S - time.perf_counter()
            if left_s <= 0:
                waiting, registration.waiting = registration.waiting, []
                self._announce(registration, registration.job, waiting)
            elif not registration.is_pausing:
                registration.is_pausing = True
                asyncio.get_running_loop().call_later(left_s, self._go_on, registration)

    def _go_on(self, registration: Registration) -> None:
        registration.is_pausing = False
        self._advance(registration)

    def _register(self, registration: Registration) -> None:
        """Register a job with what is known now of the times of its functions."""
        plan = registration.plan
        name = f"{registration.account.label} {plan.program.name:.100} {self._tag}-{next(self._numbers)}"
        job = "".join(letter if letter.isprintable() and letter != "/" else "_" for letter in name)
        try:
            made = template(plan.lowered, _seconds(plan), registration.nics)
            assert made is not None
            registration.adopt(made)
            self._client.register_job(Job(job, made.hosts, made.devices, made.profile))
            self._client.register_flow_groups(job, registration.groups(), made.graph)
        except ValueError as error:
            _LOG.warning("%s is not ranked: %s", name, error)
            self._client.deregister(job)
            self._retire([registration])
            self._others.add(plan)
            return
        registration.job = job
        registration.following = asyncio.get_running_loop().create_task(self._follow(registration, job))

    def _announce(self, registration: Registration, job: str, executions: Sequence[int]) -> None:
        """Tell the controller that these runs begin; it knows the newest of them as the one that sends."""
        self._client.start_flow_groups(job, registration.names, executions[-1])
        now_s = time.perf_counter()
        registration.announced, registration.announced_s = executions[-1], now_s
        self._announced.extend((number, job, now_s) for number in executions)

    async def _follow(self, registration: Registration, job: str) -> None:
        async for directives in self._client.directives(job):
            self._rank(registration, directives)

    def _rank(self, registration: Registration, directives: Directives) -> None:
        """Tell hosts the levels of flows that have others than before."""
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
                is_idle = not registration.running and registration.ended_s + _IDLE_S < now_s
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
        if registration.announced >= 0 and not registration.running:
            self._client.end_flow_groups(job, registration.names, registration.announced)
            registration.announced = -1
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
            self._client.report_profile(job, made.profile, registration.graph_of(made))
            registration.note_told()

    def _retire(self, registrations: Iterable[Registration]) -> None:
        """Withdraw jobs, and close their connections once nothing runs that sends on them."""
        for registration in registrations:
            self._withdraw(registration)
            registration.is_over = True
            del self._programs[registration.plan]
            if not registration.running:
                self._close_flows(registration)

    def _withdraw(self, registration: Registration) -> None:
        if registration.job is not None:
            self._client.deregister(registration.job)
            registration.job, registration.announced = None, -1
        if registration.following is not None:
            registration.following.cancel()
            registration.following = None

    def _close_flows(self, registration: Registration) -> None:
        self._without_room.clear()
        for number in registration.flows:
            self._flows.pop(number, None)
        for host, flows in registration.flows_by_host.items():
            if host in self._hosts:
                number = registration.plan.number_of_host[host]
                self._hosts[host].channel.send(messages.CloseFlows(number, tuple(each.number for each in flows)))


def _fit(registrations: Iterable[Registration]) -> bool:
    """Return whether hosts have room for the connections of all of these."""
    used = Counter(host for each in registrations for pair in each.pairs for host in pair)
    return max(used.values(), default=0) <= _MOST_CONNECTIONS


def _seconds(plan: PlannedProgram) -> Callable[[int], float]:
    return lambda node: plan.function(node).seconds
