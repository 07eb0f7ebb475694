"""Scenarios run against a controller of their own."""

import asyncio
from collections.abc import Callable

import pytest

from controller.registry.registry import Registry
from controller.telemetry.telemetry import Telemetry
from tests.controller.api.serving import Scenario, served
from tests.driven import DrivenConnection
from tests.patience import PATIENCE_S
from topologies.routing import Routing


@pytest.fixture
def telemetry(routing: Routing) -> Telemetry:
    return Telemetry(routing, lease_s=10.0)


@pytest.fixture
def run(registry: Registry, routing: Routing, telemetry: Telemetry) -> Callable[[Scenario], None]:
    """Runs a scenario against a controller of its own."""

    def run_scenario(scenario: Scenario) -> None:
        async def connected() -> None:
            async with (
                served(registry, routing, telemetry=telemetry) as (address, southbound),
                DrivenConnection(address) as client,
            ):
                await asyncio.wait_for(scenario(client, southbound), PATIENCE_S)

        asyncio.run(connected())

    return run_scenario
