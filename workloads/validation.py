"""Validation of a scenario document: every problem with its key path, first of single values, then across its parts."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT
from topologies.fabric import Fabric
from topologies.problems import Location, Problem, as_list, as_mapping, problem_of_error
from topologies.specification import Topology
from workloads.arrangement import ZeroCommunicationRun
from workloads.chakra.fitting import chakra_problems
from workloads.chakra_workload import ChakraWorkload
from workloads.combined.fitting import combined_problems
from workloads.combined_workload import CombinedWorkload
from workloads.event_validation import Events, event_problems, unknown_element_problems
from workloads.field_types import LONGEST_S
from workloads.jobs import training_jobs
from workloads.placement import GpuLedger, choose_hosts, end_s
from workloads.scenario import DEFAULT_RECOVERY_S, PlacementPolicy, Scenario
from workloads.workload import Pattern

LONGEST_RUN_S = 9e6
"""A run's clock counts picoseconds in 63 bits."""

_PORTS = LAST_SOURCE_PORT - FIRST_SOURCE_PORT + 1

_TOPOLOGY: TypeAdapter[Topology] = TypeAdapter(Topology)


def find_problems(document: object, policies: Collection[str] | None = None) -> list[Problem]:
    """Return all problems of a scenario document; an empty list means that it can be planned and run.

    ``policies`` are the known policies; None accepts any.
    """
    errors: list[ErrorDetails] = []
    scenario: Scenario | None = None
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as raised:
        errors = raised.errors()
    problems = [problem_of_error(error, document, Scenario) for error in errors if not _is_consequence(error)]
    invalid = {problem.location for problem in problems}
    problems += consistency_problems(as_mapping(document), invalid, policies)
    # Only a valid scenario can be expanded.
    return problems if problems or scenario is None else list(size_problems(scenario))


def _is_consequence(error: ErrorDetails) -> bool:
    """Pydantic calls a list of invalid items too short; the items' own errors say it better."""
    return error["type"] == "too_short" and bool(error["input"])


def consistency_problems(
    document: Mapping[str, Any], invalid: set[Location], policies: Collection[str] | None
) -> Iterator[Problem]:
    """Yield problems across valid parts of the document, so that no mistake hides another.

    Workloads need not be valid: only the ends of their flows matter here.
    """
    jobs = {
        number: _drop_nulls(_valid_part(as_mapping(job), ("jobs", number), invalid))
        | {"workload": as_mapping(job).get("workload")}
        for number, job in enumerate(as_list(document.get("jobs")))
    }
    yield from _unknown_policy(_valid_part(document, (), invalid), policies)
    yield from _repeated_names(jobs)
    yield from _missing_flops(jobs)
    yield from _empty_measurements(_valid_part(document, (), invalid), jobs)
    for number, job in jobs.items():
        yield from _transfers_outside_the_job(number, job)
        yield from _unsuitable_numbers_of_hosts(number, job)
    events = _valid_events(document, invalid)
    yield from event_problems(events, _valid_part(document, (), invalid).get("recovery_s", DEFAULT_RECOVERY_S))
    try:
        topology = _TOPOLOGY.validate_python(_valid_part(as_mapping(document.get("topology")), ("topology",), invalid))
    except ValidationError:
        return
    fabric = topology.build()
    yield from _hosts_and_gpus(jobs, fabric)
    yield from unknown_element_problems(events, fabric)


def _valid_events(document: Mapping[str, Any], invalid: set[Location]) -> Events:
    events = enumerate(as_list(document.get("events")))
    wrong = {location[1] for location in invalid if location[:1] == ("events",) and len(location) > 1}
    return {number: _drop_nulls(event) for number, event in events if number not in wrong}


def _unknown_policy(document: Mapping[str, Any], policies: Collection[str] | None) -> Iterator[Problem]:
    policy = document.get("policy")
    if policy is not None and policies is not None and policy not in policies:
        not_imported = "; no policy is imported for a scenario" if ":" in policy else ""
        yield Problem(("policy",), f"expected one of {', '.join(policies)}, got {policy!r}{not_imported}")


def _repeated_names(jobs: Mapping[int, Mapping[str, Any]]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for number, job in jobs.items():
        name = job.get("name")
        if isinstance(name, str) and first.setdefault(name, number) != number:
            yield Problem(("jobs", number, "name"), f"expected a name of its own, {name!r} is jobs[{first[name]}]")


def _missing_flops(jobs: Mapping[int, Mapping[str, Any]]) -> Iterator[Problem]:
    workloads = {number: job["workload"] for number, job in jobs.items() if isinstance(job["workload"], Mapping)}
    without = [number for number, workload in workloads.items() if workload.get("flops") is None]
    if len(without) < len(workloads):
        for number in without:
            yield Problem(
                ("jobs", number, "workload", "flops"),
                "missing; expected in all jobs if in any, to make them comparable",
            )


def _empty_measurements(document: Mapping[str, Any], jobs: Mapping[int, Mapping[str, Any]]) -> Iterator[Problem]:
    warm_up = document.get("warm_up_iterations")
    for number, job in jobs.items():
        iterations = job.get("iterations")
        if warm_up and iterations is not None and iterations <= warm_up:
            yield Problem(
                ("jobs", number, "iterations"), f"expected more than the {warm_up} warm_up_iterations, got {iterations}"
            )
    arrivals = [job.get("arrival_s", 0.0) for job in jobs.values()]
    measure = as_mapping(document.get("measure"))
    if measure and arrivals and measure["to_s"] <= min(arrivals):
        yield Problem(("measure", "to_s"), f"expected more than the first arrival, which is {min(arrivals)}")


def _transfers_outside_the_job(number: int, job: Mapping[str, Any]) -> Iterator[Problem]:
    workload = as_mapping(job["workload"])
    hosts = as_list(job.get("hosts"))
    if "gpus" in job and as_list(workload.get("flows")):
        yield Problem(("jobs", number, "gpus"), "expected hosts instead: the workload's flows name hosts")
        return
    for position, flow in enumerate(as_list(workload.get("flows"))):
        ends = [as_mapping(flow).get(key) for key in ("source", "destination")]
        here: Location = ("jobs", number, "workload", "flows", position)
        for key, host in zip(("source", "destination"), ends, strict=True):
            if hosts and isinstance(host, str) and host not in hosts:
                yield Problem((*here, key), f"expected one of the job's hosts ({_some(hosts)}), got {host!r}")
        if isinstance(ends[0], str) and ends[0] == ends[1]:
            yield Problem((*here, "destination"), f"expected another host than the source {ends[0]!r}")


def _unsuitable_numbers_of_hosts(number: int, job: Mapping[str, Any]) -> Iterator[Problem]:
    workload = as_mapping(job["workload"])
    asks_for_gpus = job.keys() >= {"gpus", "gpus_per_host"}
    num_hosts = job["gpus"] // job["gpus_per_host"] if asks_for_gpus else len(as_list(job.get("hosts")))
    here: Location = ("jobs", number, "gpus" if "gpus" in job else "hosts")
    if workload.get("pattern") == Pattern.PAIRS and num_hosts % 2:
        yield Problem(here, f"expected an even number of hosts for pairs, got {num_hosts}")
    replicas, servers = (
        count if isinstance(count := workload.get(key), int) and count > 0 else 1 for key in ("replicas", "servers")
    )
    if workload.get("type") == "fsdp" and num_hosts % replicas:
        yield Problem(here, f"expected a multiple of {replicas} replicas, got {num_hosts} hosts")
    micro_batches = workload.get("micro_batches")
    if workload.get("type") == "torch" and isinstance(micro_batches, int) and 0 < micro_batches < num_hosts:
        yield Problem(here, f"expected at most {micro_batches} hosts, one for each of micro_batches, got {num_hosts}")
    if workload.get("type") == "ps" and 0 < num_hosts <= servers:
        yield Problem(here, f"expected more than the {servers} servers, got {num_hosts} hosts")
    if workload.get("type") == "combined" and num_hosts and "gpus_per_host" in job:
        yield from _undivided(number, workload, num_hosts, job["gpus_per_host"])
    if workload.get("type") == "chakra" and num_hosts and "gpus_per_host" in job:
        yield from _unfit_trace(number, workload, num_hosts, job["gpus_per_host"])


def _undivided(number: int, workload: Mapping[str, Any], num_hosts: int, gpus_per_host: int) -> Iterator[Problem]:
    try:
        combined = CombinedWorkload.model_validate(workload)
    except ValidationError:
        return  # its own problems are found elsewhere
    for problem in combined_problems(combined, num_hosts, gpus_per_host):
        yield replace(problem, location=("jobs", number, "workload", *problem.location))


def _unfit_trace(number: int, workload: Mapping[str, Any], num_hosts: int, gpus_per_host: int) -> Iterator[Problem]:
    try:
        chakra = ChakraWorkload.model_validate(workload)
    except ValidationError:
        return  # its own problems are found elsewhere
    for problem in chakra_problems(chakra, num_hosts, gpus_per_host):
        yield replace(problem, location=("jobs", number, "workload", *problem.location))


def _hosts_and_gpus(jobs: Mapping[int, Mapping[str, Any]], fabric: Fabric) -> Iterator[Problem]:
    ledger = GpuLedger(fabric.gpus_per_host)
    for number, job in jobs.items():
        arrival_s = job.get("arrival_s", 0.0)
        until_s = end_s(arrival_s, job.get("duration_s"))
        hosts = as_list(job.get("hosts"))
        if job.keys() >= {"gpus", "gpus_per_host"}:
            policy = PlacementPolicy(job.get("placement", PlacementPolicy.AFFINITY))
            count = job["gpus"] // job["gpus_per_host"]
            try:
                hosts = choose_hosts(ledger, fabric, count, job["gpus_per_host"], policy, arrival_s, until_s)
            except ValueError as error:
                yield Problem(("jobs", number, "gpus"), str(error))
        for position, host in enumerate(hosts):
            here: Location = ("jobs", number, "hosts", position)
            if host not in fabric.host_index:
                yield Problem(here, f"expected a host of the topology ({_some(fabric.hosts)}), got {host!r}")
            elif host in hosts[:position]:
                yield Problem(here, f"expected every host once, {host!r} is there twice")
            elif "gpus_per_host" in job:
                try:
                    ledger.take(str(job.get("name")), host, job["gpus_per_host"], arrival_s, until_s)
                except ValueError as error:
                    yield Problem(here, str(error))


def _valid_part(mapping: Mapping[str, Any], location: Location, invalid: set[Location]) -> dict[str, Any]:
    """Return the keys of the mapping at this location that have no problem below them."""
    depth = len(location) + 1
    bad = {fault[:depth] for fault in invalid}
    return {key: value for key, value in mapping.items() if (*location, key) not in bad}


def _drop_nulls(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the keys that are null, because null means absent."""
    return {key: value for key, value in mapping.items() if value is not None}


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{names[0]}, {names[1]}, ... {names[-1]}"


def size_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield iterations longer than a run's clock, and NIC pairs with more flows than source ports."""
    fabric = scenario.topology.build()
    slowest_bps = min(fabric.rates_bps)
    num_flows: Counter[tuple[str, int, str, int]] = Counter()
    for number, job in enumerate(training_jobs(scenario, fabric)):
        flows = [flow for group in job.graph.flow_groups for flow in group.flows]
        sending_s = sum(flow.size_bytes for flow in flows) * 8 / slowest_bps
        if sending_s > LONGEST_S:
            yield Problem(
                ("jobs", number, "workload"),
                f"expected bytes that the slowest link, {slowest_bps / 1e9:g} Gbit/s, would carry in {LONGEST_S:g} s:"
                f" an iteration's would take {sending_s:.2g} s",
            )
        duration_s = ZeroCommunicationRun.of(job.graph).duration_s * (job.specification.iterations or 1)
        if job.specification.arrival_s + duration_s > LONGEST_RUN_S:
            yield Problem(
                ("jobs", number, "iterations"),
                f"expected a job that ends by {LONGEST_RUN_S:g} s: its computation alone takes {duration_s:.2g} s",
            )
        pairs = [(flow.source_host, flow.source_nic, flow.destination_host, flow.destination_nic) for flow in flows]
        num_flows.update(pairs)
        crowded = next((pair for pair in pairs if num_flows[pair] > _PORTS), None)
        if crowded is not None:
            source, source_nic, destination, destination_nic = crowded
            yield Problem(
                ("jobs", number, "workload"),
                f"expected at most {_PORTS:,} flows from NIC {source_nic} of {source} to NIC {destination_nic} of"
                f" {destination}, one per source port: with this job there are {num_flows[crowded]:,}",
            )
