"""Tables of ``trainyard runtime``: hosts, clients, and how busy they are."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table

from trainyard.cli.output import number_table


def hosts_table(shown: Mapping[str, Any]) -> Table:
    """Return what hosts hold and run."""
    table = number_table("Hosts", "host", "island", "process", "arrays", "bytes", "programs", "queued", left=["island"])
    for host in sorted(shown["hosts"], key=lambda host: host["host"]):
        if host.get("answers", True):
            numbers = (host["pid"], host["handles"], host["size_bytes"], host["executions"], sum(host["queued"]))
            name = f"{host['host']} (leaving)" if host["is_leaving"] else str(host["host"])
            table.add_row(name, host["island"], *(f"{number:,}" for number in numbers))
        else:
            table.add_row(str(host["host"]), host["island"], *["does not answer", *[""] * 4])
    return table


def clients_table(shown: Mapping[str, Any]) -> Table:
    """Return the connections of clients, and what each client used in all."""
    columns = (
        "slices",
        "programs",
        "arrays",
        "running",
        "held back",
        "bytes of all",
        "device-s of all",
        "host-s of all",
    )
    table = number_table("Clients", "client", *columns)
    for client in shown["clients"]:
        total = client["total"]
        here = ("slices", "programs", "arrays", "executions", "held_back")
        numbers = (*(client[each] for each in here), total["held_bytes"])
        name = f"{client['client']} (suspended)" if client["is_suspended"] else client["client"]
        times_s = (total["device_s"], total["host_s"])
        table.add_row(name, *(f"{number:,}" for number in numbers), *(f"{used_s:,.3f}" for used_s in times_s))
    return table


def published_table(shown: Mapping[str, Any]) -> Table:
    """Return what clients have published for others."""
    table = number_table("Published", "name", "by", "arrays", "bytes", "readers", left=["by"])
    for each in shown["published"]:
        numbers = (each["arrays"], each["size_bytes"], each["readers"])
        table.add_row(each["name"], each["connection"], *(f"{number:,}" for number in numbers))
    return table


def network_table(jobs: Sequence[Mapping[str, Any]]) -> Table:
    """Return what the controller of the network knows of programs, and the Plan in force for each."""
    table = number_table("Programs on the network", "job", "program", "flows", "unsteered", "plan", left=["program"])
    for job in jobs:
        plan = job["refusal"] or ("none yet" if job["plan"] is None else f"{job['plan']:,}")
        table.add_row(job["job"], job["program"], f"{job['flows']:,}", f"{job['unsteered']:,}", plan)
    return table


def busy_tables(before: Mapping[str, Any], now: Mapping[str, Any], between_s: float) -> Group:
    """Return how busy devices were between two looks, and which share of them each client had."""
    earlier = {host["host"]: host for host in before["hosts"] if host.get("answers", True)}
    hosts = number_table("Devices", "host", "island", "busy", "queued", "bytes", left=["island"])
    num_devices = 0
    for host in sorted(now["hosts"], key=lambda host: host["host"]):
        if not host.get("answers", True) or host["host"] not in earlier:
            hosts.add_row(str(host["host"]), host["island"], "does not answer", "", "")
            continue
        num_devices += len(host["busy_s"])
        busy_s = sum(host["busy_s"]) - sum(earlier[host["host"]]["busy_s"])
        share = busy_s / between_s / len(host["busy_s"])
        numbers = (f"{sum(host['queued']):,}", f"{host['size_bytes']:,}")
        hosts.add_row(str(host["host"]), host["island"], f"{share:.0%}", *numbers)
    totals = {client["client"].partition("#")[0]: client["total"] for client in before["clients"]}
    clients = number_table("Clients", "client", "weight", "devices", "programs/s", "bytes")
    for name, total in sorted({each["client"].partition("#")[0]: each["total"] for each in now["clients"]}.items()):
        old = totals.get(name, total)
        share = (total["device_s"] - old["device_s"]) / between_s / max(1, num_devices)
        rate = (total["executions"] - old["executions"]) / between_s
        clients.add_row(name, f"{total['weight']:g}", f"{share:.0%}", f"{rate:,.0f}", f"{total['held_bytes']:,}")
    return Group(hosts, clients)
