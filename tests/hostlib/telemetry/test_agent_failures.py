"""Errors of a host's agent that nobody expected: logged once, shown as its problem, and tried again."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address

import pytest

from hostlib.telemetry import host_agent
from hostlib.telemetry.host_agent import HostAgent
from hostlib.telemetry.messages import answer_from_wire
from hostlib.telemetry.probe_agent import ProbeAgent, ProbeAnswer, ProbeExchange
from hostlib.telemetry.prober import Pair, Target
from hostlib.telemetry.probes import Probe
from hostlib.wire import trainyard_pb2 as wire
from tests.patience import until

HERE, THERE = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")
ANSWER = ProbeAnswer(0.01, 1, (Target(Pair(HERE, THERE)),))


class Nic:
    """A NIC that may fail."""

    def __init__(self) -> None:
        self.address = HERE
        self.sent = self.received = self.lost = 0
        self.unsent = Counter[str]()
        self.problem: Exception | None = None
        """What sending meets."""
        self.problem_of_arrivals: Exception | None = None
        self.arrived: Callable[[], None] = lambda: None

    def listen(self, on_arrival: Callable[[], None]) -> None:
        self.arrived = on_arrival

    def stop_listening(self) -> None:
        self.arrived = lambda: None

    def send(self, _: Probe) -> None:
        if self.problem is not None:
            raise self.problem
        self.sent += 1

    def receive(self) -> Iterator[bytes]:
        if self.problem_of_arrivals is not None:
            raise self.problem_of_arrivals
        return iter(())


class Connection:
    """A controller that answers every exchange, or fails."""

    def __init__(self) -> None:
        self.problem: Exception | None = None
        self.asked = 0

    async def exchange_probes(self, _: ProbeExchange) -> ProbeAnswer:
        self.asked += 1
        if self.problem is not None:
            raise self.problem
        return ANSWER


@pytest.mark.parametrize("what", ["exchanges with the controller", "sending probes", "receiving probes"])
def test_an_error_is_logged_once_and_shown_and_the_agent_goes_on(
    what: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_agent, "_LAST_RETRY_S", 0.01)

    async def scenario() -> None:
        nic, connection = Nic(), Connection()
        agent = HostAgent(ProbeAgent("h0", {HERE: 1e11}, session=1), [nic], connection)
        running = asyncio.create_task(agent.run())
        await until(lambda: agent.status().problem is None and nic.sent > 0)
        caplog.clear()
        problem = RuntimeError("broken")
        match what:
            case "exchanges with the controller":
                connection.problem = problem
            case "sending probes":
                nic.problem = problem
            case _:
                nic.problem_of_arrivals = problem
                nic.arrived()
        failure = f"{what} failed, and is tried again: RuntimeError: broken"
        await until(lambda: agent.status().problem == failure)
        asked = connection.asked
        await until(lambda: connection.asked > asked + 3)
        connection.problem = nic.problem = nic.problem_of_arrivals = None
        nic.arrived()
        sent = nic.sent
        await until(lambda: nic.sent > sent and agent.status().problem is None)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        said = [message for message in caplog.messages if "RuntimeError" in message]
        assert said[0] == f"h0: {failure}"
        assert len([record for record in caplog.records if record.exc_info]) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        (wire.ExchangeProbesResponse(interval_s=float("nan")), "interval_s"),
        (wire.ExchangeProbesResponse(interval_s=-1.0), "interval_s"),
        (wire.ExchangeProbesResponse(targets=[wire.ProbeTarget(protocol=300)]), "targets.protocol"),
        (
            wire.ExchangeProbesResponse(targets=[wire.ProbeTarget(protocol=17, source_ports=[1 << 16])]),
            "targets: a port",
        ),
    ],
)
def test_an_answer_that_nobody_can_act_by_is_refused(answer: wire.ExchangeProbesResponse, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        answer_from_wire(answer)
