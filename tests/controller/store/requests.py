"""What tests of stored registries register, and how small the parts are in which they write it."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from controller.registry import journal
from controller.registry.registry import Registry
from controller.registry.requests import FlowRequest, NicReference, TaskGraphRequest
from controller.store import jobs
from policies.job import Profile
from topologies.specification import ClosSpecification

FABRIC = ClosSpecification(
    kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
).build()
LEASE_S = 10.0


def flow(ends: tuple[int, int], size_bytes: int, held: int | None, tcp_port: int | None = None) -> FlowRequest:
    return FlowRequest(*(NicReference(f"h{end}", 0) for end in ends), size_bytes, 0.5, None, held, tcp_port)


def amend(registry: Registry, name: str, profile: Profile, graph: TaskGraphRequest) -> bool:
    admission = registry.admitting(name, graph)
    admission.admit()
    return registry.report_profile(name, profile, admission)


@contextmanager
def in_parts_of(rows: int) -> Iterator[None]:
    with patch.object(journal, "_ROWS_PER_BATCH", rows), patch.object(jobs, "ROWS_PER_TRANSACTION", rows):
        yield
