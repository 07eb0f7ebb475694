"""Files with the packets of ports, as Scapy reads them."""

import logging
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import PcapReader

from emulator.fabric import EmulatedFabric
from emulator.observations import TraceKind
from emulator.testing import Programs
from emulator.testing.networks import Network
from tests.emulator.loads import Load, drawn_fabric
from tests.emulator.programs import trainyard

ROUTER = Path(__file__).resolve().parents[2] / "docs" / "examples" / "p4"
_SENT = Ether(src="00:00:00:00:00:01", dst="00:00:00:00:00:aa") / IP(src="10.0.1.1", dst="10.0.2.2") / UDP() / b"data"


def _read(path: Path) -> list[tuple[float, bytes, int]]:
    """Return time, bytes and length of the packets of a file."""
    with PcapReader(str(path)) as reader:
        return [(float(packet.time), bytes(packet), packet.wirelen) for packet in reader]


def _network() -> Network:
    with Programs() as programs:
        network = programs.network(programs.load(ROUTER / "router.json"), ROUTER / "topology.json")
    network["s1"].load_entries(ROUTER / "router-entries.json")
    return network


def test_what_arrives_and_what_leaves_is_read_by_scapy(tmp_path: Path) -> None:
    network = _network()
    network.run(1.5)
    network.emulated.record_packets(tmp_path / "pcaps")
    for length in (4, 1400, 9000):
        network["s1"].send(1, _SENT / bytes(length))
    sent = [bytes(_SENT / bytes(length)) for length in (4, 1400, 9000)]
    arrived = _read(tmp_path / "pcaps" / "s1-eth1_in.pcap")
    assert [(octets, length) for _, octets, length in arrived] == [(octets, len(octets)) for octets in sent]
    assert arrived[0][0] == 1.5
    left = _read(tmp_path / "pcaps" / "s1-eth2_out.pcap")
    assert [octets for _, octets, _ in left] == network["s1"].received(2)
    assert [time for time, _, _ in left] == [time for time, _, _ in arrived]
    assert _read(tmp_path / "pcaps" / "s1-eth1_out.pcap") == _read(tmp_path / "pcaps" / "s1-eth2_in.pcap") == []


def test_times_are_counted_in_nanoseconds_from_where_one_says(tmp_path: Path) -> None:
    network = _network()
    network.run(0.000_000_123)
    network.emulated.record_packets(tmp_path, [("s1", 2)], starts_ns=1_700_000_000_999_999_900)
    network["s1"].send(1, _SENT)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s1-eth2_in.pcap", "s1-eth2_out.pcap"]
    with PcapReader(str(tmp_path / "s1-eth2_out.pcap")) as reader:
        assert str(next(reader).time) == "1700000001.000000023"


def test_a_file_that_is_full_gets_no_more_and_the_log_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    network = _network()
    network.emulated.record_packets(tmp_path, limit_bytes=24 + 2 * (16 + len(_SENT)))
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            network["s1"].send(1, _SENT)
    assert len(_read(tmp_path / "s1-eth1_in.pcap")) == len(_read(tmp_path / "s1-eth2_out.pcap")) == 2
    full = [Path(record.message.partition(" is full")[0]).name for record in caplog.records]
    assert sorted(full) == ["s1-eth1_in.pcap", "s1-eth2_out.pcap"]
    assert len(network["s1"].received(2)) == 5


def test_ports_without_a_cable_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="switch 's1' has no cable at port 7"):
        _network().emulated.record_packets(tmp_path / "pcaps", [("s1", 7)])
    assert not (tmp_path / "pcaps").exists()


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    network = _network()
    network.emulated.record_packets(tmp_path)
    (tmp_path / "s1-eth2_out.pcap").unlink()
    (tmp_path / "s1-eth2_out.pcap").mkdir()
    with caplog.at_level(logging.WARNING):
        network["s1"].send(1, _SENT)
        network["s1"].send(1, _SENT)
    assert [record.message.count("s1-eth2_out.pcap cannot be written") for record in caplog.records] == [1]
    assert len(network["s1"].received(2)) == len(_read(tmp_path / "s1-eth1_in.pcap")) == 2


@pytest.mark.parametrize("seed", range(4))
def test_files_have_what_the_trace_has_on_any_number_of_cores(seed: int, tmp_path: Path) -> None:
    fabric = drawn_fabric(Random(seed))
    contents = []
    for cores in (1, 3):
        folder = tmp_path / str(cores)
        load = Load(seed, fabric, trainyard(), cores, record_into=folder)
        seen = load.carry_out()
        contents.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert contents[0] == contents[1]
    assert sum(map(len, contents[0].values())) > 24 * len(contents[0])
    (rows,) = (each for each in seen if isinstance(each, list))
    started = Counter[str]()
    for row in rows:
        link = fabric.links[row.link] if row.link < len(fabric.links) else None
        if link is not None and link.source in fabric.switch_index and row.kind == TraceKind.STARTED:
            started[f"{link.source}-eth{link.source_port}_out.pcap"] += 1
    found = {path.name: len(_read(path)) for path in folder.iterdir() if path.name.endswith("_out.pcap")}
    if rows:
        assert {name: count for name, count in found.items() if count} == dict(started)


def test_more_packets_than_the_engine_keeps_are_all_written(tmp_path: Path) -> None:
    with Programs() as programs:
        network = programs.network(programs.load(ROUTER / "router.json"), ROUTER / "topology.json")
    network["s1"].load_entries(ROUTER / "router-entries.json")
    emulated: EmulatedFabric = network.emulated
    emulated.record_packets(tmp_path)
    (into,) = (link.index for link in emulated.fabric.links if link.destination == "s1" and link.source == "h1")
    for number in range(9000):
        emulated.inject(into, bytes(_SENT / number.to_bytes(4, "big")))
    network.settle()
    for name in ("s1-eth1_in.pcap", "s1-eth2_out.pcap"):
        numbers = [int.from_bytes(octets[-4:], "big") for _, octets, _ in _read(tmp_path / name)]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) == 9000 or name == "s1-eth2_out.pcap"
