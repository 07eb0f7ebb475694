import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from pydantic import TypeAdapter

from p4src import P4INFO, PROGRAM
from tests.topologies.mixing import with_tofinos
from tests.trainyard.cli.conftest import Trainyard
from topologies.expanding import expanded
from topologies.fabric import Fabric
from topologies.specification import Topology

Write = Callable[[object], Path]

_DUMBBELL = {"kind": "dumbbell", "hosts_per_side": 2, "host_link_gbps": 100, "bottleneck_gbps": 100}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Fabric, str]]:
    """The fabrics that the emulator would have served, and where; port 13 is taken, and at port 14 the clock ends."""
    fabrics: list[tuple[Fabric, str]] = []

    class Texts(NamedTuple):
        name: str
        p4info: str
        json: str

    class ClockEndError(Exception):
        pass

    class StandaloneEmulator:
        def __init__(
            self,
            fabric: Fabric,
            pipeline: Texts,
            *,
            own: Mapping[str, Texts],
            cpu_port: int,
            drop_port: int,
            wires: object,
            entries: Mapping[str, object],
            packets: Mapping[str, object],
        ) -> None:
            assert (cpu_port, drop_port, wires, packets) == (510, 511, None, {})
            assert pipeline[1:] == (P4INFO.read_text(), PROGRAM.read_text())
            assert own.keys() == entries.keys()
            self._fabric = fabric

        async def serve(self, address: str, *, port_per_switch: bool, tls: object, pcap: object) -> None:
            assert (port_per_switch, tls, pcap) == (False, None, None)
            if address.endswith(":13"):
                raise OSError(f"{address} is taken or cannot be bound")
            if address.endswith(":14"):
                raise ClockEndError("the clock has reached its end")
            fabrics.append((self._fabric, address))

    module = ModuleType("emulator.standalone")
    module.StandaloneEmulator = StandaloneEmulator  # type: ignore[attr-defined]
    module.ClockEndError = ClockEndError  # type: ignore[attr-defined]
    module.PipelineTexts = Texts  # type: ignore[attr-defined]
    module.Wires = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "emulator.standalone", module)
    return fabrics


def test_a_topology_alone_is_served(trainyard: Trainyard, write: Write, served: list[tuple[Fabric, str]]) -> None:
    result = trainyard("emulator", "--topology", write({"topology": _DUMBBELL}))
    assert (result.exit_code, result.stderr) == (0, "")
    assert [(fabric.switches, address) for fabric, address in served] == [(("t0", "t1"), "127.0.0.1:9559")]


def test_a_fabric_with_a_tofino_is_refused_by_name(
    trainyard: Trainyard, write: Write, served: list[tuple[Fabric, str]]
) -> None:
    built = TypeAdapter[Topology](Topology).validate_python(_DUMBBELL).build()
    fabric = expanded(with_tofinos(built, {"t1"})).model_dump(mode="json")
    result = trainyard("emulator", "--topology", write({"topology": fabric}))
    assert (result.exit_code, served) == (2, [])
    assert "--topology: switch 't1' has target: tofino; the emulator executes the program for bmv2" in result.stderr


def test_the_topology_of_a_scenario_is_served(
    trainyard: Trainyard, write: Write, document: dict[str, object], served: list[tuple[Fabric, str]]
) -> None:
    ended = trainyard(
        "emulator", "--topology", write(document), "--listen", "[::1]:0", "--p4info", P4INFO, "--json", PROGRAM
    )
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert [(fabric.hosts, address) for fabric, address in served] == [(("h0", "h1", "h2", "h3"), "[::1]:0")]


def test_an_address_that_others_can_reach_is_served_where_that_is_written_down(
    trainyard: Trainyard, write: Write, served: list[tuple[Fabric, str]]
) -> None:
    ended = trainyard("emulator", "--topology", write({"topology": _DUMBBELL}), "--listen", "0.0.0.0:0", "--insecure")
    assert (ended.exit_code, [address for _, address in served]) == (0, ["0.0.0.0:0"])


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:13", "127.0.0.1:13 is taken or cannot be bound"),
        ("127.0.0.1:14", "the clock has reached its end"),
    ],
)
def test_an_emulator_that_cannot_go_on_is_status_1(
    trainyard: Trainyard, write: Write, served: list[tuple[Fabric, str]], address: str, words: str
) -> None:
    result = trainyard("emulator", "--topology", write({"topology": _DUMBBELL}), "--listen", address)
    assert (result.exit_code, served) == (1, [])
    assert f"the emulator failed: {words}" in result.stderr


def _link(*ends: str) -> dict[str, object]:
    return {"ends": list(ends), "gbps": 100}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"topology": {**_DUMBBELL, "colour": "red"}}, "topology.colour: unknown key"),
        ({"topology": {**_DUMBBELL, "hosts_per_side": 0}}, "topology.hosts_per_side"),
        ({"topology": {"kind": "torus"}}, "topology.kind: expected one of"),
        ({"topology": 3}, "topology: "),
        (_DUMBBELL, "topology: missing; kind and the other keys of a cluster belong below it"),
        (
            {
                "topology": {
                    "kind": "graph",
                    "hosts": ["h0", "h1"],
                    "switches": ["s0", "s1"],
                    "links": [_link("h0", "s0"), _link("h1", "s1")],
                }
            },
            "topology.links: expected a connected graph",
        ),
    ],
)
def test_a_bad_topology_is_refused_by_name(
    trainyard: Trainyard, write: Write, served: list[tuple[Fabric, str]], document: object, words: str
) -> None:
    path = write(document)
    result = trainyard("emulator", "--topology", path)
    assert (result.exit_code, result.stdout, served) == (2, "", [])
    assert any(line.startswith(f"{path}: {words}") for line in result.stderr.splitlines())


def test_only_a_topology_is_asked_for_where_there_is_only_a_topology(
    trainyard: Trainyard, write: Write, served: list[tuple[Fabric, str]]
) -> None:
    result = trainyard("emulator", "--topology", write({"topology": {"kind": "torus"}}))
    assert (len(result.stderr.splitlines()), served) == (1, [])


def test_a_misspelt_key_beside_a_topology_is_all_that_is_told(
    trainyard: Trainyard, write: Write, served: list[tuple[Fabric, str]]
) -> None:
    path = write({"topology": _DUMBBELL, "colour": "red"})
    result = trainyard("emulator", "--topology", path)
    assert (result.exit_code, served) == (2, [])
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{path}: colour: unknown key")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--listen", "9559"), "--listen: expected HOST:PORT with a port from 0 to 65535, got '9559'"),
        (("--listen", "localhost:99999"), "expected HOST:PORT with a port from 0 to 65535, got 'localhost:99999'"),
        (("--listen", "[::1]:65535", "--port-per-switch"), "ports of at most 65535, the last would be 65536"),
        (("--listen", "0.0.0.0:0"), "--listen: 0.0.0.0:0 can be reached from the network"),
        (("--listen", "[::]:0"), "--listen: [::]:0 can be reached from the network"),
        (("--listen", "switches.example:0"), "can be reached from the network: give --tls-certificate or --insecure"),
        (("--tls-certificate", P4INFO), "--tls-certificate, --tls-key and --tls-ca: expected all three or none"),
        (("--tls-certificate", P4INFO, "--tls-key", P4INFO, "--tls-ca", P4INFO), "are not a key pair"),
        (("--tls-certificate", "nowhere", "--tls-key", P4INFO, "--tls-ca", P4INFO), "nowhere"),
        (("--cpu-port", "2"), "the CPU port cannot be 2: switch 't0' has a cable there"),
        (("--drop-port", "510"), "the CPU port and the drop port are both 510"),
        (("--drop-port", "512"), "--drop-port"),
        (("--p4info", P4INFO), "expected both or neither"),
        (("--json", PROGRAM), "expected both or neither"),
        (("--p4info", "nowhere", "--json", PROGRAM), "nowhere: cannot be read"),
        (("--p4info", PROGRAM, "--json", PROGRAM), "the P4Info is not one in text form"),
        (("--p4info", P4INFO, "--json", P4INFO), "not a BMv2 JSON"),
        (("--program", "t0"), "--program: expected SWITCHES=P4INFO,JSON, got 't0'"),
        (("--program", f"t0={P4INFO}"), "--program: expected SWITCHES=P4INFO,JSON"),
        (("--program", f"spine*={P4INFO},{PROGRAM}"), "expected one or more of the switches t0, t1, got 'spine*'"),
        (("--program", f"t?={P4INFO},{PROGRAM}", "--program", f"t1={P4INFO},{PROGRAM}"), "t1 has two programs"),
        (("--program", f"t0=nowhere,{PROGRAM}"), "nowhere: cannot be read"),
        (("--program", f"t0={P4INFO},{P4INFO}"), f"{P4INFO} and {P4INFO}: the device config is not a BMv2 JSON"),
    ],
)
def test_bad_options_are_refused(
    trainyard: Trainyard, write: Write, options: tuple[str | Path, ...], words: str
) -> None:
    result = trainyard("emulator", "--topology", write({"topology": _DUMBBELL}), *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


def test_an_entry_of_the_program_that_cannot_be_is_told_in_one_line(
    trainyard: Trainyard, write: Write, tmp_path: Path
) -> None:
    programs = Path(__file__).parents[2] / "bmv2" / "constructs" / "programs"
    program = json.loads((programs / "tables.json").read_text())
    table = next(table for table in program["pipelines"][0]["tables"] if table.get("entries"))
    table["entries"][0]["match_key"][0] |= {"start": "0x9", "end": "0x5"}
    path = tmp_path / "reversed.json"
    path.write_text(json.dumps(program))
    files = ("--p4info", programs / "tables.p4info.txtpb", "--json", path)
    result = trainyard("emulator", "--topology", write({"topology": _DUMBBELL}), *files)
    assert result.exit_code == 2
    assert "field 'hdr.key.port' of table 'ingress.constant' has no range from 9 to 5" in result.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--wire", "h9.0=veth0"], "--wire: expected NIC=INTERFACE with one of the NICs h0.0, h1.0, h2.0, h3.0, got"),
        (["--wire", "h0.1=veth0"], "got 'h0.1=veth0'"),
        (["--wire", "h0.0"], "got 'h0.0'"),
        (["--wire", "h0.0=a", "--wire", "h0.0=b"], "--wire: h0.0 has two interfaces"),
        (["--wire", "h0.0=a", "--wire", "h1.0=a"], "--wire: a is the interface of two NICs"),
        (["--real-time"], "--netns, --mtu, --queue-bytes and --real-time: expected with --hosts or --wire only"),
        (["--netns", "lab"], "expected with --hosts or --wire only"),
        (["--wire", "h0.0=a", "--mtu", "9001"], "--mtu"),
    ],
)
def test_wires_that_cannot_be_are_refused(
    trainyard: Trainyard, write: Write, served: list[tuple[Fabric, str]], options: list[str], problem: str
) -> None:
    ended = trainyard("emulator", "--topology", write({"topology": _DUMBBELL}), *options)
    assert (ended.exit_code, served) == (2, [])
    assert problem in ended.stderr


def test_a_number_of_ports_takes_the_place_of_a_topology(
    trainyard: Trainyard, served: list[tuple[Fabric, str]]
) -> None:
    result = trainyard("emulator", "--ports", "3", "--device-id", "7")
    assert (result.exit_code, result.stderr) == (0, "")
    ((fabric, _),) = served
    assert fabric.device_ids == {"s1": 7}
    assert [link.source_port for link in fabric.links_from["s1"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--topology and --ports: expected one of them"),
        (("--ports", "2", "--entries", "s1"), "--entries: expected SWITCH=FILE, got 's1'"),
        (("--ports", "2", "--entries", "s2=x.json"), "--entries: the topology has no switch 's2'; it has s1"),
        (("--ports", "2", "--entries", "s1=none.json"), "none.json"),
        (("--ports", "2", "--packets", "s1=file"), "--packets s1: expected ipc://FILE or tcp://HOST:PORT, got 'file'"),
        (("--ports", "2", "--packets", "s1=ipc://a", "--packets", "s1=ipc://b"), "--packets: s1 is given twice"),
        (("--ports", "2", "--packets", "s1=tcp://0.0.0.0:1"), "tcp://0.0.0.0:1 can be reached from the network"),
    ],
)
def test_what_a_switch_is_to_have_is_refused_by_name(
    trainyard: Trainyard, served: list[tuple[Fabric, str]], options: tuple[str, ...], said: str
) -> None:
    result = trainyard("emulator", *options)
    assert (result.exit_code, served) == (2, [])
    assert said in result.stderr


def test_an_entry_that_the_switch_refuses_is_told_with_its_place(trainyard: Trainyard, tmp_path: Path) -> None:
    router = Path(__file__).parents[3] / "docs" / "examples" / "p4"
    entries = json.loads((router / "router-entries.json").read_text())
    entries |= {"p4info": str(router / "router.p4info.txtpb"), "bmv2_json": str(router / "router.json")}
    entries["table_entries"].append(entries["table_entries"][0])
    path = tmp_path / "entries.json"
    path.write_text(json.dumps(entries))
    result = trainyard("emulator", "--ports", "4", "--entries", f"s1={path}")
    assert result.exit_code == 2
    assert result.stderr == "entries of s1: table_entries[2]: table 'ingress.routes' has this entry\n"


def test_a_topology_of_p4langs_tutorials_names_its_programs(
    trainyard: Trainyard, served: list[tuple[Fabric, str]], tmp_path: Path
) -> None:
    entries = {"p4info": str(P4INFO), "bmv2_json": str(PROGRAM)}
    files = {name: tmp_path / f"{name}.json" for name in ("s1", "s2", "topology")}
    files["s1"].write_text(json.dumps(entries))
    files["s2"].write_text(json.dumps(entries | {"bmv2_json": "other.json"}))
    topology: dict[str, Any] = {
        "hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11"}},
        "switches": {"s1": {"runtime_json": str(files["s1"])}, "s2": {"runtime_json": str(files["s2"])}},
        "links": [["h1", "s1-p1"], ["s1-p2", "s2-p1"]],
    }
    files["topology"].write_text(json.dumps(topology))
    result = trainyard("emulator", "--topology", files["topology"])
    assert (result.exit_code, served) == (2, [])
    assert "other.json" in result.stderr
    files["s2"].write_text(json.dumps(entries))
    assert trainyard("emulator", "--topology", files["topology"]).exit_code == 0
    assert [fabric.switches for fabric, _ in served] == [("s1", "s2")]
    for program, status in ((str(PROGRAM), 0), ("firewall.json", 2)):
        topology["switches"]["s2"]["program"] = program
        files["topology"].write_text(json.dumps(topology))
        result = trainyard("emulator", "--topology", files["topology"])
        assert result.exit_code == status
    assert f"switches.s2.program: is firewall.json, and its entries name {PROGRAM}" in result.stderr
    topology["switches"]["s2"].pop("program")
    topology["links"][0][1] = "s9-p1"
    files["topology"].write_text(json.dumps(topology))
    result = trainyard("emulator", "--topology", files["topology"])
    assert "topology.json: links[0][1]: expected a host, or a switch and its port as s1-p1" in result.stderr
