"""Which port of the chip a number is, and what the chip does not have."""

import pytest

from tests.topologies.tofino.cabled import tofino
from topologies.tofino.ports import TofinoPortError, tofino_ports

_ELSEWHERE = "Tofino has queues for cables only at the numbers 0 to 63, 128 to 191, 256 to 319, 384 to 447"


def test_a_number_is_pipe_group_and_lane() -> None:
    # Ports 4 to 7 of pipe 0 and 260 to 263 of pipe 2 are group 1, says the SDE's manual of tm.port.group.
    ports = tofino_ports(tofino([(4, 10), (7, 25), (260, 100), (447, 1)]), "leaf")
    assert [(port.pipe, port.group, port.first_lane) for port in ports] == [(0, 1, 0), (0, 1, 3), (2, 1, 0), (3, 15, 3)]


@pytest.mark.parametrize(
    ("gbps", "lanes", "shaped_bps"),
    [
        *((25, 1, None), (40, 4, None), (50, 2, None), (100, 4, None)),
        *((2.5, 1, 2_500_000_000), (30, 2, 30_000_000_000), (99.9999, 4, 99_999_900_000), (1e-6, 1, 1000)),
    ],
)
def test_a_cable_slower_than_any_port_is_shaped(gbps: float, lanes: int, shaped_bps: int | None) -> None:
    (port,) = tofino_ports(tofino([(128, gbps)]), "leaf")
    assert (port.lanes, port.shaped_bps) == (lanes, shaped_bps)


def test_ports_share_a_group_by_lanes() -> None:
    ports = tofino_ports(tofino([(10, 50), (8, 25), (9, 25), (12, 50), (14, 25), (15, 10)]), "leaf")
    assert [port.number for port in ports] == [8, 9, 10, 12, 14, 15]


@pytest.mark.parametrize(
    ("ports", "problem"),
    [
        ([(192, 100)], f"192: {_ELSEWHERE}"),  # the CPU's
        ([(68, 10)], f"68: {_ELSEWHERE}"),
        ([(509, 10)], f"509: {_ELSEWHERE}"),
        ([(512, 10)], f"512: {_ELSEWHERE}"),
        ([(4, 200)], "uplink (number 4): its cable has 200 Gbit/s, a port of Tofino at most 100"),
        ([(5, 100)], "5: 100 Gbit/s takes 4 lanes, so expected a number that 4 divides"),
        ([(9, 30)], "9: 30 Gbit/s takes 2 lanes, so expected a number that 2 divides"),
        (
            [(6, 10), (4, 40)],
            "uplink (number 4): 40 Gbit/s takes 4 lanes, among them that of port 6; a group has 4 lanes and 32 queues",
        ),
        (
            [(8, 100), (6, 50), (7, 25)],
            "6: 50 Gbit/s takes 2 lanes, among them that of port last (number 7); a group has 4 lanes and 32 queues",
        ),
    ],
)
def test_what_the_chip_does_not_have_is_named(ports: list[tuple[int, float]], problem: str) -> None:
    with pytest.raises(TofinoPortError) as error:
        tofino_ports(tofino(ports, names=[(4, "uplink"), (7, "last")]), "leaf")
    assert str(error.value) == f"switch leaf: port {problem}"
