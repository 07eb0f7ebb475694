"""Failures during a run: the ``events:`` of a scenario, and the downtime of hosts that follows from them."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from workloads.field_types import Name, NonNegativeCount, ScenarioModel, Seconds

EVENT_KEYS = ("link", "switch", "host", "controller")
"""Keys of which an event has exactly one."""

Span = tuple[float, float]
"""Start and end in seconds."""


class ElementState(StrEnum):
    """State of an element of the cluster."""

    DOWN = "down"
    UP = "up"


class ScenarioEvent(ScenarioModel):
    """A cable, a switch, a host or the controller fails or recovers; an event names exactly one of them.

    ``link`` names a cable by its ends, ``parallel`` its position among parallel cables. Controllers count from 0; there
    is one.
    """

    at_s: Seconds
    link: tuple[Name, Name] | None = None
    parallel: NonNegativeCount = 0
    switch: Name | None = None
    host: Name | None = None
    controller: Annotated[int, Field(strict=True, ge=0, le=0)] | None = None
    state: ElementState

    @model_validator(mode="after")
    def _names_one_thing(self) -> Self:
        if sum(getattr(self, key) is not None for key in EVENT_KEYS) != 1:
            raise ValueError(f"expected exactly one of {', '.join(EVENT_KEYS)}")
        if self.link is None and "parallel" in self.model_fields_set:
            raise ValueError("expected parallel only beside link")
        return self

    @property
    def in_words(self) -> str:
        """Description for people."""
        if self.link is not None:
            element = f"cable {self.link[0]} to {self.link[1]}{f' ({self.parallel})' if self.parallel else ''}"
        else:
            element = f"switch {self.switch}" if self.switch else f"host {self.host}" if self.host else "controller"
        return f"{element} {self.state}"


class HostDowntime:
    """Times at which hosts are down. A computation on several hosts pauses while any of them is down."""

    def __init__(self, events: Iterable[ScenarioEvent] = ()) -> None:
        self._spans: dict[str, list[Span]] = {}
        down_s: dict[str, float] = {}
        for event in events:
            if event.host is None:
                continue
            if event.state is ElementState.DOWN:
                down_s[event.host] = event.at_s
            else:
                self._spans.setdefault(event.host, []).append((down_s.pop(event.host), event.at_s))

    def end_s(self, hosts: Sequence[str], start_s: float, duration_s: float) -> float:
        """Return when a computation of ``duration_s`` ends that starts, or waits to start, at ``start_s``."""
        for down_s, up_s in self._of(hosts):
            if up_s <= start_s:
                continue
            if down_s >= start_s + duration_s:
                break
            duration_s -= max(0.0, down_s - start_s)
            start_s = up_s
        return start_s + duration_s

    def computing(self, hosts: Sequence[str], start_s: float, end_s: float) -> list[Span]:
        """Return the spans between two times in which no host is down."""
        found = []
        for down_s, up_s in self._of(hosts):
            if start_s < min(down_s, end_s):
                found.append((start_s, min(down_s, end_s)))
            start_s = max(start_s, up_s)
        if start_s < end_s:
            found.append((start_s, end_s))
        return found

    def _of(self, hosts: Sequence[str]) -> list[Span]:
        return sorted(span for host in hosts for span in self._spans.get(host, ()))
