"""Admission checks: pure functions that hold a request against the fabric."""

import math
from collections import Counter
from collections.abc import Container, Sequence

from controller.registry.errors import ConflictError, ExhaustedError, InvalidFieldError
from controller.registry.requests import FlowRequest, JobRequest, NicReference
from policies.job import MAX_COMPUTE_S, MAX_WORK, Profile
from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT, TCP_PROTOCOL, UDP_PROTOCOL, FiveTuple
from topologies.fabric import Fabric, Nic
from topologies.names import MAX_NAME_LENGTH, is_plain
from topologies.printable import quoted

MAX_SIZE_BYTES = 1 << 63
MOST_ITERATIONS = 1 << 63
MAX_TRANSFER_S = 5e6
"""Bounds the time in which the fabric's slowest link carries all that a job sends in an iteration."""
MAX_JOB_RULES = 1024
"""Rows of a switch's table ``job`` (``p4src/shared/constants.p4``)."""
_MAX_PORT = 0xFFFF


def check_job(request: JobRequest, fabric: Fabric) -> None:
    """Raise InvalidFieldError, naming the field, where a job is not valid."""
    check_name(request.name, "name")
    _require(bool(request.hosts), "hosts: must name at least one host")
    seen: set[str] = set()
    for position, host in enumerate(request.hosts):
        _require(host in fabric.host_index, f"hosts[{position}]: unknown host {quoted(host)}")
        _require(host not in seen, f"hosts[{position}]: {host!r} is named twice")
        seen.add(host)
    num_gpus = len(request.hosts) * fabric.gpus_per_host
    _require(1 <= request.gpus <= num_gpus, f"gpus: must lie between 1 and the hosts' {num_gpus}, not {request.gpus}")
    if request.profile is not None:
        check_profile(request.profile)


def check_measurable(
    request: JobRequest, measured: Sequence[JobRequest], fabric: Fabric, named: Container[str]
) -> None:
    """Raise an error where a job cannot be measured beside the jobs that are.

    The error names another job only where it is among ``named``.

    Raises:
        ConflictError: Another measured job has two of its hosts, so that their traffic could not be told apart.
        ExhaustedError: A switch would need more than MAX_JOB_RULES rules.
    """
    hosts = frozenset(request.hosts)
    for other in measured:
        if len(hosts.intersection(other.hosts)) > 1:
            shared = [host for host in request.hosts if host in other.hosts]
            whose = repr(other.name) if other.name in named else "another tenant's job"
            raise ConflictError(
                f"hosts: {shared[0]!r} and {shared[1]!r} are hosts of {whose} too; between the same hosts the"
                " traffic of one job can be measured"
            )
    rules: Counter[str] = Counter()
    for job in (request, *measured):
        for host in job.hosts:
            for nic in fabric.nics[host]:
                rules[fabric.links[nic.link].destination] += len(job.hosts) - 1
    for switch, needed in rules.items():
        if needed > MAX_JOB_RULES:
            raise ExhaustedError(
                f"hosts: switch {switch!r} would need {needed:,} entries to measure what they send each other, it has"
                f" {MAX_JOB_RULES:,}"
            )


def check_name(name: str, field: str) -> None:
    """Raise InvalidFieldError for a name that is empty, too long, or unfit for JOB/GROUP/FLOW."""
    _require(bool(name), f"{field}: must not be empty")
    _require(len(name) <= MAX_NAME_LENGTH, f"{field}: must not be longer than {MAX_NAME_LENGTH} characters")
    _require(is_plain(name), f"{field}: must be printable and without a slash, not {name!r}")


def check_age(age_s: float) -> None:
    """Raise InvalidFieldError where a job cannot be of this age."""
    _require(math.isfinite(age_s) and age_s >= 0, f"age_s: must be finite and not negative, not {age_s}")


def check_iteration(iteration: int, field: str) -> None:
    """Raise InvalidFieldError for an iteration that does not fit a database column."""
    _require(0 <= iteration < MOST_ITERATIONS, f"{field}: must lie between 0 and 2^63 - 1, not {iteration}")


def check_profile(profile: Profile) -> None:
    """Raise InvalidFieldError where a profile is not valid."""
    _require(
        0 <= profile.compute_s <= MAX_COMPUTE_S,
        f"profile.compute_s: must lie between 0 and {MAX_COMPUTE_S:g}, not {profile.compute_s}",
    )
    _require(0 <= profile.comm_start <= 1, f"profile.comm_start: must lie between 0 and 1, not {profile.comm_start}")
    _require(
        0 <= profile.work <= MAX_WORK,
        f"profile.work: must lie between 0 and {MAX_WORK:g}, not {profile.work}",
    )


def check_flow(request: FlowRequest, job: JobRequest, fabric: Fabric, field: str) -> tuple[Nic, Nic]:
    """Return the NICs of a flow, source first; raises InvalidFieldError, naming the field below ``field``."""
    source = _nic(request.source, job, fabric, f"{field}.source")
    destination = _nic(request.destination, job, fabric, f"{field}.destination")
    _require(source.host != destination.host, f"{field}.destination.host: {source.host!r} is the source as well")
    _require(
        0 <= request.size_bytes <= MAX_SIZE_BYTES,
        f"{field}.size_bytes: must lie between 0 and 2^63, not {request.size_bytes}",
    )
    _require(
        math.isfinite(request.offset_s) and request.offset_s >= 0,
        f"{field}.offset_s: must be finite and not negative, not {request.offset_s}",
    )
    if request.held_source_port is not None:
        _require(
            FIRST_SOURCE_PORT <= request.held_source_port <= LAST_SOURCE_PORT,
            f"{field}.held_source_port: must lie between {FIRST_SOURCE_PORT} and {LAST_SOURCE_PORT},"
            f" not {request.held_source_port}",
        )
    if request.tcp_port is not None:
        _require(
            1 <= request.tcp_port <= _MAX_PORT,
            f"{field}.tcp_port: must lie between 1 and {_MAX_PORT}, not {request.tcp_port}",
        )
        _require(request.five_tuple is None, f"{field}.tcp_port: must be absent where there is a five_tuple")
    if request.five_tuple is not None:
        _check_five_tuple(request.five_tuple, source, destination, f"{field}.five_tuple")
    return source, destination


def check_transfer(sent_bytes: float, fabric: Fabric, field: str) -> None:
    """Raise InvalidFieldError where a job's flows, up to the one of ``field``, send too much in an iteration."""
    transfer_s = sent_bytes * 8 / fabric.slowest_bps
    _require(
        transfer_s <= MAX_TRANSFER_S,
        f"{field}.size_bytes: the job's flows up to this one may take {transfer_s:.3g} s an iteration, more than"
        f" {MAX_TRANSFER_S:g} s",
    )


def _nic(reference: NicReference, job: JobRequest, fabric: Fabric, field: str) -> Nic:
    nic = find_nic(reference, fabric, field)
    _require(reference.host in job.hosts, f"{field}.host: {reference.host!r} is not a host of job {job.name!r}")
    return nic


def find_nic(reference: NicReference, fabric: Fabric, field: str) -> Nic:
    """Return a NIC of the fabric. Raises InvalidFieldError where it has none such."""
    _require(reference.host in fabric.host_index, f"{field}.host: unknown host {quoted(reference.host)}")
    nics = fabric.nics[reference.host]
    _require(
        0 <= reference.index < len(nics),
        f"{field}.nic: host {reference.host!r} has NICs 0 to {len(nics) - 1}, not {reference.index}",
    )
    return nics[reference.index]


def _check_five_tuple(five_tuple: FiveTuple, source: Nic, destination: Nic, field: str) -> None:
    _require(five_tuple.source_address == source.address, f"{field}.source_address: not that of the source NIC")
    _require(
        five_tuple.destination_address == destination.address,
        f"{field}.destination_address: not that of the destination NIC",
    )
    _require(
        five_tuple.protocol in (TCP_PROTOCOL, UDP_PROTOCOL),
        f"{field}.protocol: must be TCP ({TCP_PROTOCOL}) or UDP ({UDP_PROTOCOL}), not {five_tuple.protocol}",
    )
    for name, port in (("source_port", five_tuple.source_port), ("destination_port", five_tuple.destination_port)):
        _require(0 <= port <= _MAX_PORT, f"{field}.{name}: must lie between 0 and {_MAX_PORT}, not {port}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InvalidFieldError(message)
