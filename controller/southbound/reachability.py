"""Know since when every switch is reached or away, and log each change in one line, without a flood."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto

from controller.events import BurstLog, EventKind, LineBudget, log_event
from controller.switch_addresses import SwitchAddress

_LOG = logging.getLogger(__name__)

_PATIENCE_S = 5.0
"""A switch that is not reached for so long after the start has a line."""
_TICK_S = 1.0

_LINES_PER_SWITCH, _SWITCH_REFILL_S = 4, 60.0
_LINES, _REFILL_S = 40, 2.0
"""So many lines at once, for one switch and for all; then one line in so many seconds."""


class _Contact(Enum):
    TRYING = auto()
    REACHED = auto()
    AWAY = auto()
    TAKEN = auto()


_KINDS = {
    _Contact.TRYING: EventKind.SWITCH_AWAY,
    _Contact.REACHED: EventKind.SWITCH_REACHED,
    _Contact.AWAY: EventKind.SWITCH_AWAY,
    _Contact.TAKEN: EventKind.SWITCH_LOST,
}


@dataclass(slots=True)
class _Switch:
    """The contact with a switch, since when, and what the log has of it."""

    name: str
    address: str
    since_s: float
    contact: _Contact = _Contact.TRYING
    reason: str = ""
    before_s: float = 0.0
    """How long the contact before lasted."""
    told: _Contact | None = None
    """The contact that the log has last; None before its first line, where there was nothing to tell."""
    untold: int = 0
    """Changes that the log does not have."""
    budget: LineBudget = field(default_factory=lambda: LineBudget(_LINES_PER_SWITCH, _SWITCH_REFILL_S))


class Reachability:
    """The contact with every switch; ``now_s`` is a monotonic clock.

    Changes are logged at once while there is room for lines, and otherwise by ``run`` as soon as there is again. A line
    then tells the last state alone, and how many changes were left out.
    """

    def __init__(self, addresses: Iterable[SwitchAddress], now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._budget = LineBudget(_LINES, _REFILL_S)
        self._switches: dict[str, _Switch] = {}
        self._first_reached = BurstLog(_LOG)
        self.follow(addresses)

    def follow(self, addresses: Iterable[SwitchAddress]) -> None:
        """Know the contact with these switches from now on, and with no others."""
        known = self._switches
        self._switches = {
            address.name: known.get(address.name) or _Switch(address.name, address.place, self._now_s())
            for address in addresses
        }

    def reached(self, name: str) -> None:
        """Record that a switch is connected and takes what it is given."""
        self._change(name, _Contact.REACHED, "")

    def away(self, name: str, reason: str) -> None:
        """Record that an attempt to reach a switch has failed, or that its connection has ended."""
        switch = self._switches.get(name)
        if switch is None:
            return  # it is not followed any longer
        if switch.contact in (_Contact.TRYING, _Contact.AWAY):
            switch.reason = reason
        else:
            self._change(name, _Contact.AWAY, reason)

    def taken(self, name: str, reason: str) -> None:
        """Record that another controller has a switch."""
        self._change(name, _Contact.TAKEN, reason)

    def reason(self, name: str) -> str:
        """Return why a switch is away; empty where it is not, or nothing is known."""
        return self._switches[name].reason

    def changed_ago_s(self, name: str) -> float:
        """Return how long a switch has been reached or away."""
        return self._now_s() - self._switches[name].since_s

    async def run(self) -> None:
        """Log what is due, until cancelled."""
        while True:
            await asyncio.sleep(_TICK_S)
            self.tell_due()

    def tell_due(self) -> None:
        """Log switches that were never reached, and changes that found no room before."""
        for name, switch in self._switches.items():
            if switch.contact is _Contact.TRYING and switch.told is None and self.changed_ago_s(name) >= _PATIENCE_S:
                switch.untold = 1
            if switch.untold:
                self._tell(switch)

    def _change(self, name: str, contact: _Contact, reason: str) -> None:
        switch = self._switches[name]
        switch.reason = reason
        if switch.contact is contact:
            return
        is_first = switch.contact is _Contact.TRYING and switch.told is None
        switch.before_s = self.changed_ago_s(name)
        switch.contact, switch.since_s = contact, self._now_s()
        if is_first and contact is _Contact.REACHED:
            switch.untold = 0
            self._first_reached.tell(
                EventKind.SWITCH_REACHED,
                "switch %s at %s: reached",
                switch.name,
                switch.address,
                switch=name,
                address=switch.address,
            )
        else:
            switch.untold += 1
            self._tell(switch)

    def _tell(self, switch: _Switch) -> None:
        now_s = self._now_s()
        if not (switch.budget.has_one(now_s) and self._budget.has_one(now_s)):
            return
        switch.budget.spend()
        self._budget.spend()
        left_out = f" ({switch.untold - 1} changes before this one are not logged)" if switch.untold > 1 else ""
        level = logging.ERROR if switch.contact is _Contact.TAKEN else logging.WARNING
        log_event(
            _LOG,
            level,
            _KINDS[switch.contact],
            "switch %s at %s: %s%s",
            switch.name,
            switch.address,
            _words(switch, now_s),
            left_out,
            switch=switch.name,
            address=switch.address,
            reason=switch.reason,
            since_s=_unix_s(switch, now_s),
        )
        switch.told, switch.untold = switch.contact, 0


def _words(switch: _Switch, now_s: float) -> str:
    age_s = now_s - switch.since_s
    since = datetime.fromtimestamp(_unix_s(switch, now_s)).astimezone().strftime("%H:%M:%S")
    match switch.contact:
        case _Contact.TRYING:
            return f"not reached since {since} ({age_s:.0f} s): {switch.reason or 'no answer'}"
        case _Contact.REACHED:
            return f"reached, after {switch.before_s:.1f} s without contact"
        case _Contact.AWAY:
            return f"away since {since}: {switch.reason}"
        case _Contact.TAKEN:
            return f"{switch.reason}, since {since}"


def _unix_s(switch: _Switch, now_s: float) -> float:
    """Since when the contact is as it is, as Unix time."""
    return round(time.time() - (now_s - switch.since_s), 3)
