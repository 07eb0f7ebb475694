"""What a browser asks for beside the feed: the explanation of a job or a flow, with the job's flows and cables."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from controller.api.context import ServiceContext
from controller.api.errors import BusyError, NothingPlannedError, NothingToExplainError
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.explanation import Explainer
from controller.api.operations.explanations import Explanations, decision_about, explanation_of
from controller.api.operations.pages import Turns
from controller.api.operations.parts import joined, parts
from controller.api.operations.sentences import path_words, sentences
from controller.api.rate_limiter import RateLimitError
from controller.web.page.visitors import Visitors
from controller.web.presence import Presence
from policies.flows import Flow
from topologies.fabric import Fabric, Path
from topologies.printable import printable

_MOST_FLOWS = 200
_LONGEST_LINE = 4_000
_SPACE = "\N{NO-BREAK SPACE}"
_LONGEST_NAME = 1_000
_UNITS = 10.0
"""What an explanation costs the account of a visitor, as so many calls."""
_STATUS_OF: dict[type[Exception], int] = {
    NothingPlannedError: 409,
    NothingToExplainError: 404,
    BusyError: 503,
    RateLimitError: 429,
}


class Answers:
    """Explains jobs and flows to viewers, by the same words as ``trainyard explain``."""

    def __init__(self, presence: Presence, visitors: Visitors) -> None:
        self._presence = presence
        self._visitors = visitors
        self._turns = Turns(at_once=2)
        self._explanations: tuple[Fabric, Explanations] | None = None

    async def explain(self, request: Request) -> Response:
        """Answer ``?name=JOB`` or ``?name=JOB/GROUP/NUMBER`` with lines, and with the flows and cables of a job."""
        visitor = self._visitors.viewer(request)
        context = await self._presence.settled()
        if context is None:
            return PlainTextResponse("this controller does not lead\n", 503)
        address = "" if request.client is None else request.client.host
        account = f"{visitor.tenant}/{visitor.name}" if visitor.is_known else f"page of {address}"
        try:
            await context.calls.rate_limiter.spend(account, _UNITS)
            octets = await self._explanation(request.query_params.get("name", "")[:_LONGEST_NAME], context)
        except tuple(_STATUS_OF) as error:
            return PlainTextResponse(f"{printable(str(error))}\n", _STATUS_OF[type(error)])
        return Response(octets, media_type=JSONResponse.media_type)

    async def _explanation(self, name: str, context: ServiceContext) -> bytes:
        decision = decision_about(name, context)
        fabric = context.registry.fabric
        if self._explanations is None or self._explanations[0] is not fabric:
            self._explanations = fabric, Explanations(fabric)
        explainer = await self._explanations[1].of(decision)
        async with self._turns.turn():
            explanation = explanation_of(name, explainer, context)
            return await asyncio.to_thread(_encoded, explanation, name, explainer, fabric)


def _encoded(explain: Callable[[], wire.Explanation], name: str, explainer: Explainer, fabric: Fabric) -> bytes:
    lines = [_shown(line) for line in sentences(joined(parts(explain())))]
    answer: dict[str, Any] = {"name": name, "lines": lines}
    flows = _flows_of(name, explainer)
    paths = [(flow, explainer.path_of(flow)) for flow in flows]
    answer["cables"] = sorted({link // 2 for _, path in paths for link in path})
    if explainer.has_job(name):
        answer["num_flows"] = len(flows)
        answer["flows"] = [_flow_row(flow, path, explainer, fabric) for flow, path in paths[:_MOST_FLOWS]]
    return json.dumps(answer).encode()


def _flows_of(name: str, explainer: Explainer) -> list[Flow]:
    """The flows of a job, or the one of a name."""
    for job in explainer.decision.snapshot.jobs:
        if job.name == name:
            return list(job.registered_flows)
        if name.startswith(f"{job.name}/"):
            return [flow for flow in job.registered_flows if _named(flow) == name]
    return []


def _flow_row(flow: Flow, path: Path, explainer: Explainer, fabric: Fabric) -> dict[str, object]:
    plan = explainer.decision.plan.flows[flow.key]
    return {
        "name": _named(flow),
        "label": f"{flow.key.group}/{flow.key.flow}",
        "bytes": flow.size_bytes,
        "level": plan.level,
        "steered": plan.path is not None,
        "cut_off": flow.is_cut_off,
        "path": path_words(fabric.nodes_of(path), [fabric.parallel_index(link) for link in path]),
    }


def _named(flow: Flow) -> str:
    return f"{flow.key.job}/{flow.key.group}/{flow.key.flow}"


def _shown(line: str) -> str:
    """A line without what could control its display, but with the spaces that keep numbers and units together."""
    return _SPACE.join(printable(part, _LONGEST_LINE) for part in line.split(_SPACE))
