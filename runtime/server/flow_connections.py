"""The connections that hosts have for the flows of programs: opened, counted and closed."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Set

from runtime import messages
from runtime.server.hosts import Host
from runtime.server.registrations import Registration

_LOG = logging.getLogger(__name__)

_MOST_CONNECTIONS = 300
"""Of flows that begin or end on one host: each has two while it moves, and ``select`` takes 1,024 descriptors."""


class FlowConnections:
    """The flows that hosts have connections for, by number."""

    def __init__(self, hosts: Mapping[int, Host]) -> None:
        self._hosts = hosts
        self._flows: dict[int, Registration] = {}

    @property
    def registrations(self) -> Set[Registration]:
        """Those whose flows have connections."""
        return set(self._flows.values())

    def open(self, registration: Registration) -> None:
        """Let hosts open connections for the flows of a program."""
        plan = registration.plan
        for number, subprogram, hosts in plan.subprograms:
            for host in hosts:
                self._hosts[host].load(number, subprogram, plan.functions)
        for host, flows in registration.flows_by_host.items():
            self._hosts[host].channel.send(messages.OpenFlows(plan.number_of_host[host], tuple(flows)))
        self._flows.update(dict.fromkeys(registration.flows, registration))

    def close(self, registration: Registration) -> None:
        """Let hosts close the connections of a program, on which nothing is sent any more."""
        for number in registration.flows:
            self._flows.pop(number, None)
        for host, flows in registration.flows_by_host.items():
            if host in self._hosts:
                number = registration.plan.number_of_host[host]
                self._hosts[host].channel.send(messages.CloseFlows(number, tuple(each.number for each in flows)))

    def take(self, host: int, message: messages.FlowSteered) -> None:
        """Take a host's word that a flow cannot send from the port that it was told to, or does after all."""
        registration = self._flows.get(message.number)
        if registration is None:
            return
        if not message.cause:
            registration.unsteered.discard(message.number)
            return
        if not registration.unsteered:
            what = f"port {message.source_port} of host {host}: {message.cause}"
            _LOG.warning("%s sends on another path than planned for now: %s", registration.plan.program.name, what)
        registration.unsteered.add(message.number)


def fit(registrations: Iterable[Registration]) -> bool:
    """Return whether hosts have room for the connections of all of these."""
    used = Counter(host for each in registrations for pair in each.pairs for host in pair)
    return max(used.values(), default=0) <= _MOST_CONNECTIONS
