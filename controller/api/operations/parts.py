"""An explanation as parts for the wire, in which a name or a link that it has often stands once."""

from collections.abc import Iterable, Iterator

from controller.api.operations import operations_pb2 as wire

PART_BYTES = 1 << 20


def parts(explanation: wire.Explanation) -> Iterator[wire.ExplanationPart]:
    """Split an explanation into messages of at most PART_BYTES, at least one."""
    octets = explanation.SerializeToString()
    for first in range(0, max(1, len(octets)), PART_BYTES):
        yield wire.ExplanationPart(octets=octets[first : first + PART_BYTES])


def joined(received: Iterable[wire.ExplanationPart]) -> wire.Explanation:
    """Join the parts of an explanation, with all names and links where they belong."""
    explanation = wire.Explanation.FromString(b"".join(part.octets for part in received))
    job = explanation.job if explanation.HasField("job") else wire.JobExplanation()
    uses = [*explanation.links, *explanation.flow.links] if explanation.HasField("flow") else [*explanation.links]
    if job.HasField("bottleneck"):
        uses.append(job.bottleneck)
    for use in uses:
        use.jobs.extend(explanation.jobs[place] for place in use.places)
        use.ClearField("places")
    for neighbour in (*job.neighbours, *job.host_neighbours):
        neighbour.busiest.CopyFrom(explanation.links[neighbour.busiest_link])
        neighbour.ClearField("busiest_link")
    explanation.ClearField("jobs")
    explanation.ClearField("links")
    return explanation
