"""A runtime asks a real controller how loaded the network is, and a slice goes where it is loaded least."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

import runtime as rt
from hostlib import Flow, FlowGroup, Job, Nic, Profile
from hostlib.connection import Connection
from runtime.substrates.interface import NetworkHost
from tests.patience import PATIENCE_S
from tests.runtime.ranking import controller, until

pytestmark = pytest.mark.slow

NAMES = ("h0", "h2", "h1")
"""Hosts of the controller's fabric, by island; h0 and h1 are at one switch, h2 and h3 at another."""

add_one = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x + 1)


def load(address: str, source: str, destination: str) -> None:
    """Register a job that needs nine tenths of the cables of two hosts."""

    async def register() -> None:
        flow = Flow(Nic(source), Nic(destination), 11_250_000_000)
        async with Connection(address) as connection:
            await connection.register_job(Job("big", (source, destination), 16, Profile(1.0, 0.0, 16.0)))
            await connection.register_flow_groups("big", [FlowGroup("all", (flow,))])

    asyncio.run(register())


def island_beside_the_first(address: str, token: str) -> str:
    """Where a new client's second slice goes if its first one is on the first island."""
    with rt.connect(address, token) as client:
        slices = [client.make_virtual_device_set().add_slice(1, island=island) for island in ("island-0", None)]
        here, there = (rt.pmap(add_one, devices=each) for each in slices)
        assert (there(here(np.zeros(4))).numpy(PATIENCE_S) == 2).all()
        return slices[1].island


@pytest.mark.parametrize(("loaded", "then"), [("h2", "island-2"), ("h1", "island-1")])
def test_a_slice_avoids_an_island_behind_a_loaded_link(tmp_path: Path, loaded: str, then: str) -> None:
    hosts = {number: NetworkHost(name, f"127.0.0.{number + 1}") for number, name in enumerate(NAMES)}
    address = f"unix:{tmp_path}/controller"
    with rt.local(islands=3, devices=1, network_hosts=hosts, controller=address) as runtime:

        def placed() -> str:
            return island_beside_the_first(runtime.address, runtime.tokens["local"])

        assert placed() == "island-1"  # no controller is there: the first of those that are equal
        with controller(address):
            load(address, loaded, "h3")
            until(lambda: placed() == then)
            assert placed() == then
        until(lambda: placed() == "island-1")
