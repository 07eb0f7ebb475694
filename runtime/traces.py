"""What devices ran and what hosts sent, as events of the Trace Event Format, which Perfetto and Chrome show.

Each device has a row, and so has each flow to another island: the pieces that it sent, each from when it was on the
queue of its connection to when it had come as a whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from runtime.store.buffers import HOST

_US_PER_S = 1e6
_TRANSFER = "transfer"
_FIRST_FLOW = 1000
"""The row of the first flow, below those of devices."""


class _Transfer(NamedTuple):
    """A piece of a flow that has come; the job is empty where its run was not announced, and times are None then."""

    source: int
    flow: int
    execution: int
    host: int
    size_bytes: int
    level: int
    job: str
    announced_s: float | None
    ranked_s: float | None
    made_s: float
    began_s: float
    ended_s: float


def trace_events(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a status with what hosts ran; times in microseconds from the first computation."""
    labels = {client["number"]: client["client"] for client in status["clients"]}
    hosts = [host for host in status["hosts"] if host.get("answers", True)]
    transfers = list(_transfers(status, hosts))
    begins_s = (*(ran[4] for host in hosts for ran in host["ran"]), *(each.began_s for each in transfers))
    start_s = min(begins_s, default=0.0)
    events: list[dict[str, Any]] = []
    for host in hosts:
        name = f"{host['island']}, host {host['host']}"
        events.append({"ph": "M", "name": "process_name", "pid": host["host"], "args": {"name": name}})
        for device in range(len(host["queued"])):
            events.append(_row(host["host"], device, f"device {device}"))
        if any(ran[3] == HOST for ran in host["ran"]):
            events.append(_row(host["host"], len(host["queued"]), "host CPUs"))
        for called, client, execution, device, began_s, ended_s in host["ran"]:
            events.append(
                {
                    "ph": "X",
                    "name": called,
                    "cat": labels.get(client, f"client {client}"),
                    "pid": host["host"],
                    "tid": len(host["queued"]) if device == HOST else device,
                    "ts": (began_s - start_s) * _US_PER_S,
                    "dur": (ended_s - began_s) * _US_PER_S,
                    "args": {"client": labels.get(client, f"client {client}"), "execution": execution},
                }
            )
    rows = {(each.source, each.flow): each.host for each in transfers}
    events.extend(_row(source, _FIRST_FLOW + flow, f"flow {flow} to host {to}") for (source, flow), to in rows.items())
    events.extend(_event(each, start_s) for each in transfers)
    return events


def announced_before_producer_end(events: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the share of transfers that were announced before what they sent had been made; None of no transfer."""
    found = [event["args"] for event in events if event.get("cat") == _TRANSFER]
    early = [each for each in found if each["announced_us"] is not None and each["announced_us"] < each["made_us"]]
    return len(early) / len(found) if found else None


def _row(host: int, number: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "thread_name", "pid": host, "tid": number, "args": {"name": name}}


def _event(transfer: _Transfer, start_s: float) -> dict[str, Any]:
    def in_us(time_s: float | None) -> float | None:
        return None if time_s is None else (time_s - start_s) * _US_PER_S

    return {
        "ph": "X",
        "name": f"to host {transfer.host}",
        "cat": _TRANSFER,
        "pid": transfer.source,
        "tid": _FIRST_FLOW + transfer.flow,
        "ts": in_us(transfer.began_s),
        "dur": (transfer.ended_s - transfer.began_s) * _US_PER_S,
        "args": {
            "execution": transfer.execution,
            "job": transfer.job,
            "size_bytes": transfer.size_bytes,
            "level": None if transfer.level < 0 else transfer.level,
            "announced_us": in_us(transfer.announced_s),
            "ranked_us": in_us(transfer.ranked_s),
            "made_us": in_us(transfer.made_s),
        },
    }


def _transfers(status: Mapping[str, Any], hosts: Sequence[Mapping[str, Any]]) -> Iterator[_Transfer]:
    """Yield the pieces that hosts have sent on flows, and of which others know that they have come."""
    announced = {number: (job, at_s) for number, job, at_s in status.get("network", {}).get("announced", ())}
    arrived = {tuple(name): ended_s for host in hosts for name, ended_s in host.get("arrived", ())}
    for host in hosts:
        for flow, name, to, size_bytes, level, ranked_s, made_s, began_s in host.get("sent", ()):
            ended_s = arrived.get(tuple(name))
            if ended_s is not None:
                execution = name[0]
                job, announced_s = announced.get(execution, ("", None))
                ranked = None if level < 0 else ranked_s
                told = (job, announced_s, ranked, made_s, began_s, ended_s)
                yield _Transfer(host["host"], flow, execution, to, size_bytes, level, *told)
