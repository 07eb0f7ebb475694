import pytest

from topologies.addressing import (
    TCP_PROTOCOL,
    UDP_PROTOCOL,
    FiveTuple,
    address_and_length,
    regular_interface,
    switch_mac,
)


@pytest.mark.parametrize(
    ("host", "nic", "address"), [(0, 0, "10.0.0.1"), (258, 7, "10.1.2.8"), (65_535, 253, "10.255.255.254")]
)
def test_address_of_a_nic_holds_host_and_nic(host: int, nic: int, address: str) -> None:
    assert str(regular_interface(host, nic).address) == address


@pytest.mark.parametrize("host", [-1, 65_536])
def test_hosts_without_an_address_are_refused(host: int) -> None:
    with pytest.raises(ValueError, match=f"host index {host} .*at most 65,536 hosts"):
        regular_interface(host, 0)


@pytest.mark.parametrize("nic", [-1, 254])
def test_nics_without_an_address_are_refused(nic: int) -> None:
    with pytest.raises(ValueError, match=f"NIC index {nic} .*at most 254 NICs"):
        regular_interface(0, nic)


def test_mac_addresses_are_unique_local_and_unicast() -> None:
    ends = [(0, 0), (0, 253), (1, 0), (65_535, 253)]
    macs = [regular_interface(*end).mac for end in ends] + [
        switch_mac(switch, port) for switch, port in [*ends, (1, 253), (0, 509)]
    ]
    assert len(set(macs)) == len(macs)
    assert all(mac < 1 << 48 and mac >> 40 & 0b11 == 0b10 for mac in macs)


def test_flows_read_like_addresses() -> None:
    ends = regular_interface(0, 0).address, regular_interface(1, 1).address
    assert str(FiveTuple(*ends, UDP_PROTOCOL, 49152, 4791)) == "udp 10.0.0.1:49152 > 10.0.1.2:4791"
    assert str(FiveTuple(*ends, TCP_PROTOCOL, 1, 2)).startswith("tcp ")
    assert str(FiveTuple(*ends, 132, 1, 2)).startswith("132 ")


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ((1, 1 << 32, 17, 2, 3), "destination_address from 0 to 4294967295, not 4294967296"),
        ((1, float("inf"), 17, 2, 3), "destination_address .* not inf"),
        ((1, 2, 256, 2, 3), "protocol from 0 to 255, not 256"),
        ((1, 2, 17, 2, -1), "destination_port .* not -1"),
        ((1, 2, 17, 2), "shorter"),
        ((1, 2, 17, 2, 3, 4), "longer"),
    ],
)
def test_numbers_that_no_packet_has_are_refused(numbers: tuple[int, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        FiveTuple.of_numbers(numbers)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10.0.0.1", "like 192.168.7.11/26"),
        ("10.0.0/26", "expected an IPv4 address: '10.0.0'"),
        ("fe80::1/64", "IPv6 is not supported"),
        *(
            (f"10.0.0.1/{length}", "prefix length from 8 to 32")
            for length in ("", "7", "33", "-8", "8.0", "008", "8/8")
        ),
    ],
)
def test_what_is_no_address_with_a_length_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        address_and_length(text, 8)


def test_an_address_keeps_the_bits_behind_its_prefix() -> None:
    address, length = address_and_length("192.168.7.11/26", 8)
    assert (str(address), length) == ("192.168.7.11", 26)
    assert address_and_length("0.0.0.0/0", 0) == (0, 0)
