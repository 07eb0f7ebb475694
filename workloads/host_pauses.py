"""When hosts stand still: what computes on a host that is down goes on when it is up again."""

from collections.abc import Iterable, Sequence

from workloads.events import ElementState, ScenarioEvent

Span = tuple[float, float]
"""From and to, in seconds."""


class HostPauses:
    """The times at which hosts are down; a computation on several hosts stands still while any of them is."""

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
        """When a computation ends that begins, or waits to begin, at a time and computes for so long."""
        for down_s, up_s in self._of(hosts):
            if up_s <= start_s:
                continue
            if down_s >= start_s + duration_s:
                break
            duration_s -= max(0.0, down_s - start_s)
            start_s = up_s
        return start_s + duration_s

    def computing(self, hosts: Sequence[str], start_s: float, end_s: float) -> list[Span]:
        """The spans between two times in which none of the hosts is down."""
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
