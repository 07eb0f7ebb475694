"""An explanation of the controller in sentences."""

from collections.abc import Iterator

from controller.api.operations import operations_pb2 as wire
from experiments.report.numbers import count, percent, quantity
from trainyard.cli.layout import way
from trainyard.cli.profile_words import profile_words


def sentences(explanation: wire.Explanation) -> Iterator[str]:
    """Line by line why a job or a flow was given what it has."""
    yield from _job(explanation.job) if explanation.HasField("job") else _flow(explanation.flow)
    yield f"Decided by {explanation.policy} in plan {explanation.plan_number}."


def _job(job: wire.JobExplanation) -> Iterator[str]:
    state = job.state
    yield f"{state.name}: rank {state.rank} of {job.jobs} (0 is the most urgent), level {state.level}."
    if state.profile.source in (wire.NOT_KNOWN_YET, wire.BEING_MEASURED):
        yield f"It has told its hosts alone. Its profile: {profile_words(state.profile)}; until then no more is known."
        return
    yield job.reason
    yield (
        f"An iteration is W = {quantity(job.work)} of computation on {count(state.gpus)} GPUs and takes"
        f" {job.alone_iteration_s:.3f} s where it waits for nobody."
    )
    if state.profile.source != wire.TOLD:
        yield f"It has told its hosts alone. Its profile: {profile_words(state.profile)}."
    if job.HasField("bottleneck"):
        yield f"Its bytes need {job.communication_s:.3f} s on its busiest link, {_link(job.bottleneck)}."
    if not job.neighbours:
        yield "It meets no other job at a switch."
    for other in job.neighbours:
        order = "goes before it" if other.level > state.level else "waits for it"
        if other.level == state.level:
            order = "shares its level"
        yield f"It meets {other.name} (rank {other.rank}, level {other.level}), which {order}, on {_shared(other)}."
    for other in job.host_neighbours:
        order = "goes before it" if other.rank < state.rank else "waits for it"
        yield f"At hosts, by rank: {other.name} (rank {other.rank}) {order}, on {_shared(other)}."


def _flow(flow: wire.FlowExplanation) -> Iterator[str]:
    state = flow.state
    yield f"{state.job}/{state.flow_group}/{state.flow}: level {state.level}, order {state.order} at its host."
    yield f"On the wire {state.five_tuple}; {quantity(state.size_bytes)}B an iteration."
    if state.is_cut_off:
        yield "Failures have left it no path: it is led nowhere, and what follows is what a whole fabric would give it."
    chosen_by = "the plan" if state.steered else "the fabric's hash"
    yield f"Its path, chosen by {chosen_by}: {way(state.path.nodes, state.path.links)}"
    for link in flow.links:
        yield f"  {_link(link)}: {', '.join(link.jobs)}"
    yield f"Candidates, and what others put on the busiest link of each ({len(flow.candidates)}):"
    for candidate in sorted(flow.candidates, key=lambda candidate: candidate.others_utilisation):
        marks = [name for name, is_so in (("chosen", candidate.chosen), ("hash", candidate.hashed)) if is_so]
        if candidate.foreign_utilisation > 0:
            marks.append(f"foreign load {percent(candidate.foreign_utilisation)}")
        note = f"  ({', '.join(marks)})" if marks else ""
        path = way(candidate.path.nodes, candidate.path.links)
        yield f"  {percent(candidate.others_utilisation):>8}  {path}{note}"
    if not flow.rules:
        yield "No rule is needed for it."
    for rule in flow.rules:
        sent = (
            f"sends it to {rule.next_node}, port {rule.port}, whatever its hash says" if rule.HasField("port") else ""
        )
        marked = f"marks it level {rule.level}" if rule.HasField("level") else ""
        yield f"Switch {rule.switch} {' and '.join(filter(None, (sent, marked)))}."


def _shared(other: wire.Neighbour) -> str:
    links = "link" if other.shared_links == 1 else "links"
    return f"{count(other.shared_links)} {links}; the fullest: {_link(other.busiest)}"


def _link(link: wire.LinkUse) -> str:
    return (
        f"{link.source}.{link.parallel}>{link.destination} ({quantity(link.rate_bps)}bit/s,"
        f" {percent(link.planned_utilisation)} planned)"
    )
