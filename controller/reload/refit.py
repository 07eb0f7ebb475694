"""What the controller remembers of one fabric, on another one: jobs, measurements, pins, and what is drained."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from controller.links.drain_targets import DrainTargets
from controller.links.drains import Drain, DrainKind, DrainTarget
from controller.planning.interventions import HandPin
from controller.planning.path_names import path_name, path_of
from controller.profiling.measured import Measured
from controller.profiling.shares import PathShare
from controller.registry.admission import check_flow, check_job
from controller.registry.jobs import RegisteredFlow, RegisteredFlowGroup, RegisteredJob
from controller.registry.requests import FlowRequest, NicReference
from topologies.fabric import Fabric, Nic
from topologies.fabric_match import FabricMatch


def refitted(job: RegisteredJob, fabric: Fabric) -> RegisteredJob:
    """Return a job with the NICs of another fabric. Raises InvalidFieldError, naming the field that does not fit."""
    check_job(job.request, fabric)
    groups = tuple(
        _group(group, job, fabric, f"flow_groups[{position}]") for position, group in enumerate(job.flow_groups)
    )
    return replace(job, flow_groups=groups)


def _group(group: RegisteredFlowGroup, job: RegisteredJob, fabric: Fabric, field: str) -> RegisteredFlowGroup:
    flows = tuple(_flow(flow, job, fabric, f"{field}.flows[{number}]") for number, flow in enumerate(group.flows))
    return replace(group, flows=flows)


def _flow(flow: RegisteredFlow, job: RegisteredJob, fabric: Fabric, field: str) -> RegisteredFlow:
    ends = _reference(flow.source), _reference(flow.destination)
    request = FlowRequest(*ends, flow.size_bytes, flow.offset_s, flow.five_tuple)
    source, destination = check_flow(request, job.request, fabric, field)
    return replace(flow, source=source, destination=destination)


def _reference(nic: Nic) -> NicReference:
    return NicReference(nic.host, nic.index)


def refitted_measurements(measured: Mapping[str, Measured], match: FabricMatch) -> dict[str, Measured]:
    """Return measurements of jobs with the paths of the new fabric, without those of which a path is no more."""
    found = {job: _measured(each, match) for job, each in measured.items()}
    return {job: each for job, each in found.items() if each is not None}


def _measured(measured: Measured, match: FabricMatch) -> Measured | None:
    shares = []
    for share in measured.shares:
        path, nics = match.path(share.path), match.after.nics
        if path is None:
            return None
        one, other = (nics[nic.host][nic.index] for nic in (share.source, share.destination))
        shares.append(PathShare(one, other, path, share.size_bytes))
    return replace(measured, shares=tuple(shares))


def refitted_pins(pins: Iterable[HandPin], match: FabricMatch) -> dict[HandPin, HandPin | None]:
    """Return what becomes of pins on the new fabric: None where a cable of their path is no more.

    Paths count parallel cables, so that the same words may mean another cable.
    """
    found: dict[HandPin, HandPin | None] = {}
    for pin in pins:
        found[pin] = pin
        if pin.path is not None:
            with suppress(ValueError):  # the fabric before does not have it either
                path = match.path(path_of(pin.path, match.before))
                found[pin] = None if path is None else replace(pin, path=path_name(path, match.after))
    return found


def refitted_drains(drains: Iterable[Drain], match: FabricMatch) -> dict[Drain, Drain | None]:
    """Return what becomes of drains on the new fabric: None where it has no such node or cable any longer."""
    before, after = DrainTargets(match.before), DrainTargets(match.after)
    found: dict[Drain, Drain | None] = {}
    for drain in drains:
        target: DrainTarget | None = drain.target
        if drain.target.kind is DrainKind.LINK:
            # A port may have another name by now.
            cables = match.cables_of(before.cables(drain.target))
            target = after.link(next(iter(cables))) if cables else None
        elif not after.exists(drain.target):
            target = None
        found[drain] = None if target is None else replace(drain, target=target)
    return found
