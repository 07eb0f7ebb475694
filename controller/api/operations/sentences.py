"""An explanation in sentences, the same for the command ``trainyard explain`` and the page."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from controller.api.operations import operations_pb2 as wire
from topologies.quantities import count, percent, quantity

_ASSUMED = ", which it only assumes"


def sentences(explanation: wire.Explanation) -> Iterator[str]:
    """Yield an explanation line by line."""
    lines = _job(explanation.job) if explanation.HasField("job") else _flow(explanation.flow)
    yield next(lines)
    if explanation.HasField("pause"):
        yield _paused(explanation.pause)
    if explanation.HasField("idle_pin"):
        yield _idle(explanation.idle_pin)
    yield from lines
    yield f"Decided by {explanation.policy} in Plan {explanation.plan_number}."


def profile_words(profile: wire.ProfileState) -> str:
    """Return where the profile of a job comes from, and what was measured of it."""
    if profile.source != wire.MEASURED:
        return wire.ProfileSource.Name(profile.source).lower().replace("_", " ")
    return (
        f"measured {profile.age_s:.0f} s ago, {profile.iterations} iterations of {profile.period_s:.3g} s,"
        f" {profile.transfer_s:.3g} s of transfer"
    )


def path_words(nodes: Sequence[str], links: Sequence[int]) -> str:
    """Return a path as ``h0.0>t0.1>h2``; from ``t0.1`` it takes the second of the parallel links to the next node."""
    return ">".join((*(f"{node}.{link}" for node, link in zip(nodes, links, strict=False)), nodes[-1]))


def pause_words(pause: wire.PauseState) -> str:
    """Return whether planning is paused or all rules are released, by whom, how long ago and why."""
    by, why = f" by {pause.by}" if pause.by else "", f": {pause.reason}" if pause.reason else ""
    return f"{'released' if pause.is_released else 'paused'}{by} {pause.since_ago_s:,.0f} s ago{why}"


def until_words(left_s: float) -> str:
    """Return the time after so many seconds, to the second."""
    until = datetime.now(UTC) + timedelta(seconds=left_s)
    return f"{until:%Y-%m-%d %H:%M:%S} UTC"


def _job(job: wire.JobExplanation) -> Iterator[str]:
    state = job.state
    yield f"{state.name}: rank {state.rank} of {job.jobs}, level {state.level}; rank 0 and level 7 are the most urgent."
    if state.profile.source in (wire.NOT_KNOWN_YET, wire.BEING_MEASURED):
        yield f"It registered its hosts only. Its profile: {profile_words(state.profile)}."
        return
    if job.HasField("pin"):
        yield f"Its level was {_pinned(job.pin)}. What follows is how the policy ranks it."
    yield (
        f"An iteration is W = {quantity(job.work)} of computation, in GPU-seconds unless jobs tell FLOPs, on"
        f" {count(state.gpus)} GPUs and takes {job.alone_iteration_s:.3f} s alone on the fabric."
    )
    yield job.reason
    if state.profile.source != wire.TOLD:
        yield f"It registered its hosts only. Its profile: {profile_words(state.profile)}."
    if job.HasField("tasks"):
        yield f"It has told what an iteration does, in {count(job.tasks)} tasks{_ASSUMED if job.is_guessed else ''}."
    if job.HasField("bottleneck"):
        yield f"Its bytes need {job.communication_s:.3f} s on its busiest link, {_link(job.bottleneck)}."
    for group in job.compressed:
        yield (
            f"It compresses {group.flow_group}: of {quantity(group.dense_bytes)}B an iteration it sends"
            f" {quantity(group.sent_bytes)}B. It may count on {quantity(group.rate_bps)}bit/s, and on"
            f" {group.slack_s:.3f} s for the last transfer before it waits."
        )
        if group.reason:
            yield f"In its own words: {group.reason}"
    if not job.neighbours:
        yield "It shares no link of a switch with another job."
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
    yield f"5-tuple: {state.five_tuple}; {quantity(state.size_bytes)}B an iteration."
    if state.is_cut_off:
        yield "Failures have left it no path. What follows is its path without failures."
    chosen = "chosen by the Plan" if state.steered else "chosen by the fabric's hash"
    if flow.HasField("pin"):
        chosen = _pinned(flow.pin)
    yield f"Its path, {chosen}: {path_words(state.path.nodes, state.path.links)}"
    for link in flow.links:
        yield f"  {_link(link)}: {', '.join(link.jobs)}"
    yield f"Candidate paths ({len(flow.candidates)}), with the load of other flows on the busiest link of each:"
    for candidate in sorted(flow.candidates, key=lambda candidate: candidate.others_utilisation):
        marks = [name for name, is_so in (("chosen", candidate.chosen), ("hash", candidate.hashed)) if is_so]
        if candidate.foreign_utilisation > 0:
            marks.append(f"foreign load {percent(candidate.foreign_utilisation)}")
        note = f"  ({', '.join(marks)})" if marks else ""
        path = path_words(candidate.path.nodes, candidate.path.links)
        yield f"  {percent(candidate.others_utilisation):>8}  {path}{note}"
    if not flow.rules:
        yield "It needs no rule."
    for rule in flow.rules:
        sent = f"sends it to {rule.next_node}, port {rule.port}, instead of by hash" if rule.HasField("port") else ""
        marked = f"marks it level {rule.level}" if rule.HasField("level") else ""
        yield f"Switch {rule.switch} {' and '.join(filter(None, (sent, marked)))}."


def _paused(pause: wire.PauseState) -> str:
    if pause.is_released:
        return f"All rules are out ({pause_words(pause)}): levels are 0, and flows go by the hash, until `resume`."
    return f"Planning was {pause_words(pause)}. Its level and its paths stay what they are until `resume`."


def _idle(pin: wire.PinState) -> str:
    what = f"to level {pin.level}" if pin.HasField("level") else f"to {pin.path}"
    return f"It is {_pinned(pin)} {what}, which does not hold: {pin.problem}."


def _pinned(pin: wire.PinState) -> str:
    return f"pinned by {pin.by or 'somebody'} until {until_words(pin.left_s)}"


def _shared(other: wire.Neighbour) -> str:
    links = "link" if other.shared_links == 1 else "links"
    return f"{count(other.shared_links)} {links}; the fullest: {_link(other.busiest)}"


def _link(link: wire.LinkUse) -> str:
    return (
        f"{link.source}.{link.parallel}>{link.destination} ({quantity(link.rate_bps)}bit/s,"
        f" {percent(link.planned_utilisation)} planned)"
    )
