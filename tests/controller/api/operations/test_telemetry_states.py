"""The states of loads, with the part of foreign traffic."""

from io import StringIO

import numpy as np
from rich.console import Console

from controller.api.operations.telemetry_states import load_states
from controller.telemetry.telemetry import Telemetry
from experiments.report.numbers import percent
from hostlib.wire.int_md import UTILISATION_WINDOW_US
from tests.controller.telemetry.reports import samples
from topologies.routing import Routing
from trainyard.cli.show_tables import loads


def test_foreign_loads_stand_beside_loads(routing: Routing) -> None:
    telemetry, fabric = Telemetry(routing, lease_s=30.0), routing.fabric
    nics = fabric.nics
    path = routing.candidate_paths(nics["h0"][0], nics["h2"][0])[0]
    rate_bps = fabric.links[path[1]].rate_bps
    for number in range(20):
        told = samples(path, number / 2, round(rate_bps / 4 * UTILISATION_WINDOW_US / 8e6))
        telemetry.foreign_loads.record(telemetry.links.record(told, "h2"), "h2")
    later, states = (list(load_states(telemetry, fabric, now_s)) for now_s in (100.0, 9.5))
    assert [(state.source, state.destination) for state in states] == [
        (fabric.links[link].source, fabric.links[link].destination) for link in sorted(path[1:])
    ]
    assert not any(state.HasField("foreign_bps") for state in later)
    for state in states:
        assert np.isclose(state.foreign_bps / rate_bps, 0.25, rtol=1e-4)
        assert state.foreign_bps == state.load_bps
    console = Console(width=160, file=StringIO(), record=True)
    console.print(loads(states), loads(later))
    assert console.export_text().count(percent(0.25)) == 2 * len(states) + len(later)
