"""What a job compresses, and what it may count on."""

from collections.abc import Iterator, Mapping
from operator import attrgetter

from controller.api.operations import operations_pb2 as wire
from policies.flows import FlowKey
from policies.job import Job


def compression_states(
    job: Job, reliable_bps: Mapping[FlowKey, float], reasons: Mapping[str, str]
) -> Iterator[wire.CompressionState]:
    """Yield the state of each flow group that a job compresses.

    Args:
        job: As it was decided on.
        reliable_bps: By flow, what it may count on.
        reasons: By flow group, why it sends so much, in the job's words.
    """
    for group in job.flow_groups:
        if group.uncompressed is not None:
            largest = max(group.flows, key=attrgetter("size_bytes"))
            yield wire.CompressionState(
                flow_group=group.name,
                sent_bytes=sum(flow.size_bytes for flow in group.flows),
                dense_bytes=group.uncompressed.size_bytes,
                rate_bps=reliable_bps.get(largest.key, 0.0),
                slack_s=group.uncompressed.slack_s,
                reason=reasons.get(group.name, ""),
            )
