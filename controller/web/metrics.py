"""Serves the metrics at ``/metrics`` to viewers, in Prometheus' text format or OpenMetrics; also on a standby."""

import asyncio
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controller.access.authenticator import Authenticator
from controller.access.identity import Role
from controller.metrics import REGISTRY, SCRAPES
from controller.web.callers import require
from controller.web.metric_states import ControllerStates, StateCounter, read_states
from controller.web.presence import Presence

_SHARE = 0.2
"""The most of the time that is spent on making metrics, however often viewers ask."""
_LONGEST_PAUSE_S = 2.0


@dataclass(frozen=True, slots=True)
class Format:
    """A format in which metrics are told."""

    content_type: str
    encode: Callable[["Scrape"], bytes]


TEXT = Format(CONTENT_TYPE_PLAIN_0_0_4, generate_latest)
OPEN_METRICS = Format(openmetrics.CONTENT_TYPE_LATEST, openmetrics.generate_latest)


def format_of(accepted: str) -> Format:
    """The format that a request accepts, as its header says. Our names are the same under every escaping."""
    try:
        _, content_type = choose_encoder(accepted)
    except TypeError:  # it compares a version that is no number
        return TEXT
    is_open = content_type.partition(";")[0] == OPEN_METRICS.content_type.partition(";")[0]
    return OPEN_METRICS if is_open else TEXT


@dataclass(frozen=True, slots=True)
class Scrape:
    """All metrics of one moment, as the encoders of Prometheus' client take them."""

    counter: StateCounter
    states: ControllerStates | None

    def collect(self) -> Iterator[Metric]:
        """The metrics."""
        yield from REGISTRY.collect()
        yield from self.counter.families(self.states)


@dataclass(frozen=True, slots=True)
class _Made:
    begun_s: float
    octets: bytes


class Scrapes:
    """Makes the metrics, in a thread, once for all who wait for them in the same format.

    Nobody gets what is older than the request. After the metrics were made, nobody gets new ones before a pause.
    """

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._counter = StateCounter()
        self._one_at_a_time = asyncio.Lock()
        self._made: dict[Format, _Made] = {}
        self._next_s = -math.inf

    async def octets(self, of: Format) -> bytes:
        """Return the metrics of now or of a little later, in a format."""
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        async with self._one_at_a_time:
            known = self._made.get(of)
            if known is not None and known.begun_s >= asked_s:
                return known.octets
            await asyncio.sleep(self._next_s - loop.time())
            context = await self._presence.settled()
            begun_s = loop.time()
            with SCRAPES.time():
                states = None if context is None else read_states(context)
                octets = await asyncio.to_thread(of.encode, Scrape(self._counter, states))
            self._made[of] = _Made(begun_s, octets)
            taken_s = loop.time() - begun_s
            self._next_s = loop.time() + min(taken_s * (1 / _SHARE - 1), _LONGEST_PAUSE_S)
            return octets


def metrics_route(presence: Presence, authenticator: Authenticator) -> Route:
    """The route of the metrics."""
    scrapes = Scrapes(presence)

    async def answer(request: Request) -> Response:
        require(request, authenticator, Role.VIEWER)
        of = format_of(request.headers.get("accept", ""))
        return Response(await scrapes.octets(of), headers={"Content-Type": of.content_type})

    return Route("/metrics", answer)
