"""What devices ran, as events of the Trace Event Format, which Perfetto and Chrome show: a row for each device."""

from collections.abc import Mapping
from typing import Any

from runtime.store.buffers import HOST

_US_PER_S = 1e6


def trace_events(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a status with what hosts ran; times in microseconds from the first computation."""
    labels = {client["number"]: client["client"] for client in status["clients"]}
    hosts = [host for host in status["hosts"] if host.get("answers", True)]
    start_s = min((ran[4] for host in hosts for ran in host["ran"]), default=0.0)
    events: list[dict[str, Any]] = []
    for host in hosts:
        name = f"{host['island']}, host {host['host']}"
        events.append({"ph": "M", "name": "process_name", "pid": host["host"], "args": {"name": name}})
        for device in range(len(host["queued"])):
            thread = {"ph": "M", "name": "thread_name", "pid": host["host"], "tid": device}
            events.append({**thread, "args": {"name": f"device {device}"}})
        if any(ran[3] == HOST for ran in host["ran"]):
            thread = {"ph": "M", "name": "thread_name", "pid": host["host"], "tid": len(host["queued"])}
            events.append({**thread, "args": {"name": "host CPUs"}})
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
    return events
