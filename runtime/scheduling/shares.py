"""Proportional share: clients get device time by weight (Pathways, section 5.2 and Figure 9)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from runtime.scheduling.errors import SchedulingError
from runtime.scheduling.gangs import GangRequest


@dataclass(slots=True)
class _Account:
    """What a client has used.

    Attributes:
        weight: Its share, relative to those of others.
        virtual_s: The device-seconds charged, over the weight.
        credit_s: Device-seconds charged too much: estimates above what gangs occupied. It pays for the next gangs, so
            that virtual time never runs back.
    """

    weight: float
    virtual_s: float = 0.0
    credit_s: float = 0.0

    def charge(self, device_s: float) -> None:
        self.credit_s -= device_s
        if self.credit_s < 0:
            self.virtual_s -= self.credit_s / self.weight
            self.credit_s = 0.0


class ProportionalShare:
    """The client with the least virtual time goes first; among gangs of one client the one with the least slack.

    Virtual time is device-seconds over weight, as in stride scheduling (Waldspurger and Weihl, 1995). A gang is charged
    devices times cost when it is granted, and the difference to what it occupied when it completes: no client gains by
    estimates that are too small. A client that comes back starts no earlier than the others are: nobody saves up.

    Args:
        weights: The weights of clients, positive.
        default_weight: The weight of every other client.

    Raises:
        SchedulingError: A weight is not positive and finite.
    """

    def __init__(self, weights: Mapping[str, float] | None = None, default_weight: float = 1.0) -> None:
        self._weights = dict(weights or {})
        self._default_weight = default_weight
        for client, weight in [*self._weights.items(), ("other clients", default_weight)]:
            _check_weight(client, weight)
        self._accounts: dict[str, _Account] = {}
        self._present: dict[str, _Account] = {}
        self._latest_s = 0.0

    def set_weight(self, client: str, weight: float) -> None:
        """Change the weight of a client, from its next gang on."""
        _check_weight(client, weight)
        self._weights[client] = weight
        if client in self._accounts:
            self._accounts[client].weight = weight

    def urgency(self, request: GangRequest) -> float:
        """Return the latest start."""
        return request.latest_start_s

    def clock(self, client: str) -> float:
        """Return the virtual time of a client."""
        return self._accounts[client].virtual_s

    def joined(self, client: str) -> None:
        """Let a client compete again, no earlier than the client served last, or the least served one that is here."""
        if client not in self._accounts:
            self._accounts[client] = _Account(self._weights.get(client, self._default_weight))
        account = self._accounts[client]
        now_s = min((other.virtual_s for other in self._present.values()), default=self._latest_s)
        account.virtual_s = max(account.virtual_s, min(now_s, self._latest_s))
        self._present[client] = account

    def left(self, client: str) -> None:
        """Keep the account of a client, which competes no longer."""
        self._present.pop(client, None)

    def granted(self, client: str, device_s: float) -> None:
        """Charge a client what a gang is expected to occupy."""
        account = self._accounts[client]
        self._latest_s = max(self._latest_s, account.virtual_s)
        account.charge(device_s)

    def corrected(self, client: str, device_s: float) -> None:
        """Charge a client what a gang occupied above its estimate, or give it credit."""
        if client in self._accounts:
            self._accounts[client].charge(device_s)

    def forgot(self, client: str) -> None:
        """Close the account of a client."""
        self._present.pop(client, None)
        self._accounts.pop(client, None)


def _check_weight(client: str, weight: float) -> None:
    if not (weight > 0 and math.isfinite(weight)):
        raise SchedulingError(f"{client}: weight: must be positive and finite, not {weight}")
