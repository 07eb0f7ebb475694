"""What tests of P4 programs see when they fail, and what they may do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from emulator.p4runtime.readable import EntryError
from emulator.testing import ProgramError, Programs, Switch

ROOT = Path(__file__).resolve().parents[3]
ROUTER = ROOT / "docs" / "examples" / "p4"


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with Programs() as made:
        yield made


@pytest.fixture
def switch(programs: Programs) -> Switch:
    made = programs.switch(programs.load(ROUTER / "router.json"), ports=[1, 2, 7])
    made.table("routes").add({"destination": "10.0.2.0/24"}, "forward", next_hop="00:00:00:00:00:02", port=2)
    return made


_SENT = Ether(src="00:00:00:00:00:01", dst="00:00:00:00:00:aa") / IP(src="10.0.1.1", dst="10.0.2.2") / UDP() / b"data"


def test_a_wrong_packet_is_shown_field_by_field(switch: Switch) -> None:
    switch.send(1, _SENT)
    with pytest.raises(AssertionError) as raised:
        switch.expect(2, _SENT, ignoring=["IP.chksum"])
    text = str(raised.value)
    assert text.startswith("switch s1, port 2: expected Ether / IP / UDP")
    assert "IP.ttl: expected 64, got 63" in text
    assert "Ether.dst: expected 00:00:00:00:00:aa, got 00:00:00:00:00:02" in text
    assert "IP.chksum" not in text


def test_a_packet_elsewhere_and_drops_are_told(switch: Switch) -> None:
    switch.send(1, _SENT)
    with pytest.raises(AssertionError) as raised:
        switch.expect(7, _SENT)
    assert "nothing came there\nelsewhere came:\n  s1 port 2: Ether / IP / UDP" in str(raised.value)
    switch.received(2)
    switch.send(1, Ether() / IP(dst="10.0.9.9"))
    with pytest.raises(AssertionError, match="switch s1 has dropped: 1 by program"):
        switch.expect(7, _SENT)


def test_the_packet_that_was_sent_last_is_traced_through_tables(switch: Switch) -> None:
    switch.set_register("last_source", 1, 5)
    switch.send(1, _SENT)
    with pytest.raises(AssertionError) as raised:
        switch.expect(7, _SENT)
    text = str(raised.value)
    assert "trace of the packet that was sent last, to s1 port 1:\n" in text
    assert "table ingress.routes: hit\n" in text
    assert "entry 0xa000200/24: ingress.forward(0x2, 0x2)" in text
    assert "ipv4.ttl: 0x40 -> 0x3f" in text
    with pytest.raises(AssertionError, match="nobody has expected") as again:
        switch.expect_nothing()
    assert "trace" not in str(again.value)
    assert switch.counter("received", 1).packets == 1


def test_a_packet_that_another_one_comes_before_is_traced_with_what_it_met_then(switch: Switch) -> None:
    for octets in (bytes(_SENT), bytes(_SENT / bytes(3000))):
        switch.send(1, octets)
    switch.received(2)
    with pytest.raises(AssertionError, match=rf"packet arrives by port 1, {len(_SENT) + 3000} bytes"):
        switch.expect(2, _SENT)
    switch.send(1, _SENT)
    switch.table("routes").delete({"destination": "10.0.2.0/24"})
    with pytest.raises(AssertionError) as raised:
        switch.expect(7, _SENT)
    assert "trace" not in str(raised.value)


def test_a_packet_before_one_of_the_controller_is_not_traced_as_the_last_one(switch: Switch) -> None:
    switch.send(1, _SENT)
    switch.packet_out(_SENT, egress_port=7)
    with pytest.raises(AssertionError, match="nobody has expected") as raised:
        switch.network.expect_nothing()
    assert "trace" not in str(raised.value)


def test_packets_that_nobody_expects_are_listed_once(switch: Switch) -> None:
    switch.send(1, _SENT)
    with pytest.raises(AssertionError, match="nobody has expected:\n  s1 port 2: "):
        switch.expect_nothing()
    switch.expect_nothing()


def test_a_packet_is_expected_once(switch: Switch) -> None:
    switch.send(1, _SENT)
    (octets,) = switch.received(2)
    switch.send(1, _SENT)
    switch.expect(2, octets)
    with pytest.raises(AssertionError, match="nothing came there"):
        switch.expect(2, octets)


@pytest.mark.parametrize("length", [60, 511, 512, 513, 700, 1514, 9000, 65_000])
def test_packets_of_any_length_keep_all_their_bytes(switch: Switch, length: int) -> None:
    header = bytes(_SENT)[:42]
    octets = header + bytes(index % 251 for index in range(length - len(header)))
    switch.send(1, octets)
    (found,) = switch.received(2)
    assert (len(found), found[42:]) == (length, octets[42:])


def test_entries_are_written_read_changed_and_deleted(switch: Switch) -> None:
    routes = switch.table("ingress.routes")
    assert [entry.match for entry in routes.entries()] != []
    routes.modify({"destination": "10.0.2.0/24"}, "forward", next_hop="00:00:00:00:00:02", port=7)
    switch.send(1, _SENT)
    assert len(switch.received(7)) == 1
    routes.delete({"destination": "10.0.2.0/24"})
    routes.set_default("forward", next_hop=3, port=1)
    switch.send(1, _SENT)
    assert len(switch.received(1)) == 1
    switch.load_entries(ROUTER / "router-entries.json")
    switch.send(1, _SENT)
    assert len(switch.received(2)) == 1


def test_p4runtime_texts_are_taken(switch: Switch) -> None:
    switch.write(
        "type: INSERT entity { packet_replication_engine_entry { multicast_group_entry {"
        " multicast_group_id: 3 replicas { egress_port: 1 instance: 1 } } } }"
    )
    assert len(switch.read("packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 3 } }")) == 1
    switch.set_register("last_source", 2, 77)
    assert switch.register("ingress.last_source", 2) == 77


def test_refusals_are_in_the_switchs_words(switch: Switch) -> None:
    route = {"destination": "10.0.2.0/24"}
    with pytest.raises(AssertionError, match=r"switch s1 refuses: .*entry"):
        switch.table("routes").add(route, "forward", next_hop=1, port=1)
    with pytest.raises(EntryError, match=r"there is no table 'roads'; there is ingress\.senders"):
        switch.table("roads")
    with pytest.raises(AssertionError, match="its fields are egress_port; given are none"):
        switch.packet_out(b"x")
    with pytest.raises(ValueError, match="switch s1 has no port 3; it has 1, 2, 7"):
        switch.send(3, b"x")
    with pytest.raises(AssertionError, match="refuses"):
        switch.register("last_source", 100_000)


def test_a_port_that_is_down_passes_nothing(switch: Switch) -> None:
    switch.set_port(2, up=False)
    switch.send(1, _SENT)
    switch.expect_nothing()
    switch.set_port(2, up=True)
    switch.send(1, _SENT)
    assert len(switch.received(2)) == 1


def test_hosts_of_a_network_exchange_packets(programs: Programs) -> None:
    network = programs.network(programs.load(ROUTER / "router.json"), ROUTER / "topology.json")
    network["s1"].load_entries(ROUTER / "router-entries.json")
    network.send("h1", _SENT)
    routed = _SENT.copy()
    routed.src, routed.dst, routed.ttl = _SENT.dst, "08:00:00:00:02:22", 63
    network.expect("h2", routed)
    network.expect_nothing()
    assert network.time_s > 0.001
    with pytest.raises(ValueError, match="there is no host 'h9'; there is h1, h2"):
        network.send("h9", b"")


def test_a_program_is_compiled_once(programs: Programs, tmp_path: Path) -> None:
    first = programs.load(ROUTER / "router.json")
    for name in ("router.json", "router.p4info.txtpb"):
        (tmp_path / name).write_text((ROUTER / name).read_text())
    assert programs.load(tmp_path / "router.json") is first
    assert programs.load(ROUTER / "router.json", drop_port=500) is not first


def test_a_source_is_compiled_by_p4c(programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for p4c, which is in no package: it has the same options."""
    compiler = tmp_path / "p4c-bm2-ss"
    compiler.write_text(
        f"#!{sys.executable}\n"
        "import shutil, sys\n"
        "given = sys.argv[1:]\n"
        "if '-DFAIL' in given: sys.exit('router.p4(3): error: no such thing')\n"
        f"shutil.copy({str(ROUTER / 'router.json')!r}, given[given.index('-o') + 1])\n"
        f"shutil.copy({str(ROUTER / 'router.p4info.txtpb')!r}, given[given.index('--p4runtime-files') + 1])\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("P4C", str(compiler))
    assert programs.load(ROUTER / "router.p4").name == "router"
    with pytest.raises(ProgramError, match="no such thing"):
        programs.load(ROUTER / "router.p4", options=["-DFAIL"])
    monkeypatch.setenv("P4C", "no-such-compiler")
    with pytest.raises(ProgramError, match="no-such-compiler not found: set P4C, or compile"):
        programs.load(ROUTER / "router.p4")


def test_files_that_are_no_program_are_refused_by_name(programs: Programs, tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"none\.json"):
        programs.load(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ProgramError, match=r"bad\.json"):
        programs.load(tmp_path / "bad.json", ROUTER / "router.p4info.txtpb")


_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def test_the_example_of_the_page_passes() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "emulator.testing_plugin", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, str(ROUTER / "test_router.py")],
        cwd=ROUTER,
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "7 passed" in ended.stdout or "......." in ended.stdout


def test_the_plugin_imports_nothing_that_other_tests_would_wait_for() -> None:
    code = "import sys, emulator.testing_plugin; print({'numba', 'numpy', 'finsy', 'grpc'} & sys.modules.keys())"
    ended = subprocess.run([sys.executable, "-c", code], env=_ENVIRONMENT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "set()"
