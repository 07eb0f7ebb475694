"""``trainyard explain``: a controller's reasons for what it gave a job or a flow, in sentences."""

import json
from collections.abc import Iterator
from typing import Annotated

import typer

from controller.api.operations import operations_pb2 as wire
from experiments.report.numbers import count, percent, quantity
from trainyard.cli.connecting import CaOption, CertificateOption, KeyOption, Shown, TokenFileOption, connect_or_exit
from trainyard.cli.options import DEFAULT_CONTROLLER, AnswerJsonOption, ControllerOption
from trainyard.cli.output import PrintableConsole, path_words
from trainyard.cli.show import message_object, profile_words

_ASSUMED = ", which it only assumes"

NameArgument = Annotated[str, typer.Argument(metavar="JOB|JOB/GROUP/FLOW", help="A job, or one of its flows.")]


def explain(
    name: NameArgument,
    controller: ControllerOption = DEFAULT_CONTROLLER,
    as_json: AnswerJsonOption = False,
    ca: CaOption = None,
    certificate: CertificateOption = None,
    key: KeyOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Explain why a running controller gave a job its level, or a flow its path."""
    with connect_or_exit(controller, Shown(ca, certificate, key, token_file)) as operations:
        explanation = operations.explain(name)
    if as_json:
        print(json.dumps(message_object(explanation)))
        return
    console = PrintableConsole()
    for line in sentences(explanation):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def sentences(explanation: wire.Explanation) -> Iterator[str]:
    """Yield an explanation line by line."""
    yield from _job(explanation.job) if explanation.HasField("job") else _flow(explanation.flow)
    yield f"Decided by {explanation.policy} in Plan {explanation.plan_number}."


def _job(job: wire.JobExplanation) -> Iterator[str]:
    state = job.state
    yield f"{state.name}: rank {state.rank} of {job.jobs} (0 is the most urgent), level {state.level}."
    if state.profile.source in (wire.NOT_KNOWN_YET, wire.BEING_MEASURED):
        yield f"It registered its hosts only. Its profile: {profile_words(state.profile)}."
        return
    yield job.reason
    yield (
        f"An iteration is W = {quantity(job.work)} of computation on {count(state.gpus)} GPUs and takes"
        f" {job.alone_iteration_s:.3f} s alone on the fabric."
    )
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
    chosen_by = "the Plan" if state.steered else "the fabric's hash"
    yield f"Its path, chosen by {chosen_by}: {path_words(state.path.nodes, state.path.links)}"
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


def _shared(other: wire.Neighbour) -> str:
    links = "link" if other.shared_links == 1 else "links"
    return f"{count(other.shared_links)} {links}; the fullest: {_link(other.busiest)}"


def _link(link: wire.LinkUse) -> str:
    return (
        f"{link.source}.{link.parallel}>{link.destination} ({quantity(link.rate_bps)}bit/s,"
        f" {percent(link.planned_utilisation)} planned)"
    )
