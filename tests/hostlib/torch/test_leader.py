"""The levels of a Plan, as the first rank tells them to the others."""

from ipaddress import IPv4Address

import pytest

from hostlib.torch.leader import rows_of, why_plain
from hostlib.torch.levels import Levels
from hostlib.torch.sockets import Endpoints
from hostlib.torch.template import Connection, Template
from hostlib.types import Directives, FlowDirective

_ENDS = Endpoints(IPv4Address("10.0.0.1"), 1000, IPv4Address("10.0.0.2"), 2000)


def _directives(*levels: int) -> Directives:
    flows = [FlowDirective("data 0", flow, (), level, 0, 1000) for flow, level in enumerate(levels)]
    return Directives(1, None, tuple(flows))


def _template(*connections: Connection) -> Template:
    known = {("data 0", flow): connection for flow, connection in enumerate(connections)}
    return Template(None, (), None, known, frozenset())


def test_each_sender_is_told_its_connection_and_level() -> None:
    template = _template(Connection(0, 1, 8, _ENDS), Connection(1, 0, 8, _ENDS.reversed))
    assert rows_of(template, _directives(5, 6)) == [
        (0, "data 0", ("10.0.0.1", 1000, "10.0.0.2", 2000), 5),
        (1, "data 0", ("10.0.0.2", 2000, "10.0.0.1", 1000), 6),
    ]


def test_a_flow_that_was_registered_otherwise_is_passed_over() -> None:
    assert len(rows_of(_template(Connection(0, 1, 8, _ENDS)), _directives(5, 6))) == 1


@pytest.mark.parametrize(
    ("address", "note"),
    [
        ("10.9.9.9", "the controller knows no NIC with address 10.9.9.9, so the job runs plain"),
        ("127.0.0.1", "address 127.0.0.1, so the job runs plain; the loopback interface is in no fabric"),
    ],
)
def test_why_a_job_runs_plain_is_said(address: str, note: str) -> None:
    assert why_plain({IPv4Address(address)}).endswith(note)
    assert why_plain(frozenset()) == "nothing crosses the network, so the job runs plain"


def test_a_transport_without_connections_has_a_level_that_its_communicators_ask_for() -> None:
    levels = Levels()
    levels.apply(1, rows_of(_template(Connection(0, 1, 8, None)), _directives(5)), iteration_s=None)
    assert (levels.most_urgent, levels.of_groups) == (5, {"data 0": 5})
    assert levels.counters() == (0, 0)
