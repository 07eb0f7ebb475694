"""Everything that is wrong with a scenario's document, each with its key path: single values, then the whole."""

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from topologies.fabric import Fabric
from topologies.specification import Topology
from workloads.placement import GpuLedger, end_s
from workloads.scenario import Pattern, Scenario

Location = tuple[str | int, ...]
"""Keys and positions from the top of the document."""

_TOPOLOGY: TypeAdapter[Topology] = TypeAdapter(Topology)
_EXPECTED = {
    "missing": "missing; this key is required",
    "model_type": "expected a mapping",
    "model_attributes_type": "expected a mapping",
    "tuple_type": "expected a list",
    "invalid_key": "expected text as a key; quote it",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong at a place of the document."""

    location: Location
    text: str

    def __str__(self) -> str:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.location).lstrip(".")
        return f"{path}: {self.text}" if path else self.text


def find_problems(document: object) -> list[Problem]:
    """All problems of a scenario's document, those of its keys and values first; none: ``Scenario`` accepts it."""
    faults: list[ErrorDetails] = []
    try:
        Scenario.model_validate(document)
    except ValidationError as error:
        faults = error.errors()
    problems = [_schema_problem(fault, document) for fault in faults if not _is_consequence(fault)]
    return problems + list(_problems_of_the_whole(_mapping(document), {problem.location for problem in problems}))


def _is_consequence(fault: ErrorDetails) -> bool:
    """Pydantic calls a list too short whose items are all wrong; their own faults say it better."""
    return fault["type"] == "too_short" and bool(fault["input"])


def _schema_problem(fault: ErrorDetails, document: object) -> Problem:
    location = _without_tags(fault["loc"], document)
    if fault["type"] in ("union_tag_invalid", "union_tag_not_found"):
        tag = fault["ctx"]["discriminator"].strip("'")
        given = fault["ctx"].get("tag")
        expected = f"expected one of {fault['ctx']['expected_tags']}, got {given!r}" if given else _EXPECTED["missing"]
        return Problem((*location, tag), expected)
    if fault["type"] == "extra_forbidden":
        return Problem(location, f"unknown key; expected one of {', '.join(_known_keys(fault['loc']))}")
    text = _EXPECTED.get(fault["type"])
    if text is None:
        text = fault["msg"].removeprefix("Value error, ").replace("Input should be", "expected", 1)
    given = fault["input"]
    shown = fault["type"] != "missing" and isinstance(given, str | int | float)
    return Problem(location, f"{text}, got {reprlib.repr(given)}" if shown else text)


def _without_tags(location: Location, document: object) -> Location:
    """The location less the names of union members, which Pydantic puts in and the document does not have."""
    kept: list[str | int] = []
    here = document
    for step in location:
        if isinstance(here, Mapping):
            if step not in here and step in (here.get("kind"), here.get("type")):
                continue
            here = here.get(step)
        elif isinstance(here, Sequence) and isinstance(step, int) and step < len(here):
            here = here[step]
        kept.append(step)
    return tuple(kept)


def _known_keys(location: Location) -> list[str]:
    """Keys of the mapping that a key at this location (as Pydantic gives it) would belong to."""
    models: list[type[BaseModel]] = [Scenario]
    for step in location[:-1]:
        if isinstance(step, str):
            fields = [model.model_fields[step] for model in models if step in model.model_fields]
            models = [member for field in fields for member in _models_in(field.annotation)] or [
                model for model in models if _has_tag(model, step)
            ]
    return sorted({key for model in models for key in model.model_fields})


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _has_tag(model: type[BaseModel], tag: str) -> bool:
    annotations = (field.annotation for field in model.model_fields.values())
    return any(tag in get_args(annotation) for annotation in annotations if get_origin(annotation) is Literal)


def _problems_of_the_whole(document: Mapping[str, Any], faulty: set[Location]) -> Iterator[Problem]:
    """What the schema cannot see, looked for in the parts that are sound, so that no mistake hides another.

    Workloads are taken as they are: what is looked for in them needs no more than their flows' ends.
    """
    jobs = {
        number: _sound_part(_mapping(job), ("jobs", number), faulty) | {"workload": _mapping(job).get("workload")}
        for number, job in enumerate(_list(document.get("jobs")))
    }
    yield from _repeated_names(jobs)
    yield from _mixed_work(jobs)
    for number, job in jobs.items():
        yield from _traffic_outside_the_job(number, job)
    try:
        topology = _TOPOLOGY.validate_python(_sound_part(_mapping(document.get("topology")), ("topology",), faulty))
    except ValidationError:
        return
    fabric = topology.build()
    yield from _hosts_and_gpus(jobs, fabric)


def _repeated_names(jobs: Mapping[int, Mapping[str, Any]]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for number, job in jobs.items():
        name = job.get("name")
        if isinstance(name, str) and first.setdefault(name, number) != number:
            yield Problem(("jobs", number, "name"), f"expected a name of its own, {name!r} is jobs[{first[name]}]")


def _mixed_work(jobs: Mapping[int, Mapping[str, Any]]) -> Iterator[Problem]:
    workloads = {number: job["workload"] for number, job in jobs.items() if isinstance(job["workload"], Mapping)}
    without = [number for number, workload in workloads.items() if workload.get("flops") is None]
    if len(without) < len(workloads):
        for number in without:
            yield Problem(
                ("jobs", number, "workload", "flops"),
                "missing; expected in all jobs if in any, to make them comparable",
            )


def _traffic_outside_the_job(number: int, job: Mapping[str, Any]) -> Iterator[Problem]:
    workload = _mapping(job["workload"])
    hosts = _list(job.get("hosts"))
    if workload.get("pattern") == Pattern.PAIRS and len(hosts) % 2:
        yield Problem(("jobs", number, "hosts"), f"expected an even number of hosts for pairs, got {len(hosts)}")
    for position, flow in enumerate(_list(workload.get("flows"))):
        ends = [_mapping(flow).get(key) for key in ("source", "destination")]
        here: Location = ("jobs", number, "workload", "flows", position)
        for key, host in zip(("source", "destination"), ends, strict=True):
            if hosts and isinstance(host, str) and host not in hosts:
                yield Problem((*here, key), f"expected one of the job's hosts ({_some(hosts)}), got {host!r}")
        if isinstance(ends[0], str) and ends[0] == ends[1]:
            yield Problem((*here, "destination"), f"expected another host than the source {ends[0]!r}")


def _hosts_and_gpus(jobs: Mapping[int, Mapping[str, Any]], fabric: Fabric) -> Iterator[Problem]:
    ledger = GpuLedger(fabric.gpus_per_host)
    for number, job in jobs.items():
        hosts = _list(job.get("hosts"))
        for position, host in enumerate(hosts):
            here: Location = ("jobs", number, "hosts", position)
            if host not in fabric.host_index:
                yield Problem(here, f"expected a host of the topology ({_some(fabric.hosts)}), got {host!r}")
            elif host in hosts[:position]:
                yield Problem(here, f"expected every host once, {host!r} is there twice")
            elif "gpus_per_host" in job:
                arrival_s = job.get("arrival_s", 0.0)
                until_s = end_s(arrival_s, job.get("duration_s"))
                try:
                    ledger.take(str(job.get("name")), host, job["gpus_per_host"], arrival_s, until_s)
                except ValueError as error:
                    yield Problem(here, str(error))


def _sound_part(mapping: Mapping[str, Any], location: Location, faulty: set[Location]) -> dict[str, Any]:
    """The keys of a mapping at this location under which nothing is at fault."""
    depth = len(location) + 1
    bad = {fault[:depth] for fault in faulty}
    return {key: value for key, value in mapping.items() if (*location, key) not in bad}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{names[0]}, {names[1]}, ... {names[-1]}"
