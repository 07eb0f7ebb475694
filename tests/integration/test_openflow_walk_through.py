"""The walk-through of docs/openflow.md, command by command as the page has them, on Open vSwitch in Mininet."""

import re
import time

import pytest

from tests.docs.pages import ROOT, code_lines
from tests.mininet_cli import CUSTOM, TOPOLOGY, MininetCli, mininet
from tests.openvswitch import skip_without_openvswitch
from tests.patience import PATIENCE_S

PAGE = ROOT / "docs/openflow.md"
_TOPOLOGY = f"trainyard,{TOPOLOGY},mtu=7500"
_RATE = re.compile(r"([\d.]+) ([KMG]?)bits/sec")
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_TRIED = ("mininet> ", "python ", "trainyard show", "trainyard explain", "trainyard drain", "trainyard undrain")

_ALL_REACH_EACH_OTHER = r"Results: 0% dropped \(12/12 received\)"
_EXPECTED = {
    "mininet> pingall": [_ALL_REACH_EACH_OTHER] * 2,
    "mininet> dpctl dump-flows table=3": [r"nw_dst=10\.0\.2\.0/24 actions=group:"],
    "mininet> dpctl dump-groups": [r"type=select,selection_method=dp_hash"],
    "trainyard show switches": [r"(?s)t0 .*a1 "],
    "trainyard show links": [r"all cables are used"],
    "trainyard show rules": [r"t0 +tcp 10\.0\.1\.1:50001 > 10\.0\.2\.1:5001 +a\d, port \d +7"],
    "trainyard show paths": [r"h1\.0>t0\.0>a1\.0"],
    "trainyard explain iperf": [r"iperf: rank 0 of 1, level 7"],
    "trainyard drain switch a0": [r"safe to work on switch a0"],
    "mininet> link t0 a1 down": [r"\A\Z"],
    "mininet> link t0 a1 up": [r"\A\Z"],
}
"""What the commands print, each time that the page has them."""


def test_every_command_of_the_page_does_what_it_says() -> None:
    skip_without_openvswitch()
    lines = code_lines(PAGE)
    assert f"sudo mn --custom {CUSTOM} --topo {_TOPOLOGY} --switch ovs" in lines
    expected = {command: list(patterns) for command, patterns in _EXPECTED.items()}
    printed = {}
    with mininet("--topo", _TOPOLOGY, "--switch", "ovs") as cli:
        for line in lines[
            : lines.index(
                "trainyard run workloads/scenarios/three-jobs.yaml --on namespaces"
                " --switch ovs --policy ecmp --policy crux"
            )
        ]:
            if line.startswith(_TRIED):
                patterns = expected.get(line, [])
                printed[line] = _try(cli, line, patterns.pop(0) if patterns else "")
        ended = cli.leave()
    assert not any(expected.values())
    assert "Done" in ended
    unmarked = _rate(printed["mininet> h0 wait"] + printed["mininet> h0 iperf -c h2 -t 10 &"])
    assert _rate(printed["mininet> h1 iperf -c h2 -t 10 -B 10.0.1.1:50001"]) > 2 * unmarked, printed


def _try(cli: MininetCli, line: str, pattern: str) -> str:
    """Type a command; what other terminals show is looked at until it is what the page says."""
    by = time.monotonic() + PATIENCE_S
    while not re.search(pattern, printed := _typed(cli, line)):
        if not line.startswith(("trainyard show", "mininet> pingall")) or time.monotonic() > by:
            pytest.fail(f"{line} printed {printed}, expected {pattern}")
    return printed


def _typed(cli: MininetCli, line: str) -> str:
    """What a command prints: it is typed at Mininet's prompt, or in a shell outside all hosts."""
    if line.startswith("python "):
        return cli.type(f"sh sleep infinity | .venv/bin/{line} >/dev/null &")
    if line.startswith("trainyard "):
        return cli.type(f"sh COLUMNS=200 .venv/bin/{line} 2>&1")
    return cli.type(line.removeprefix("mininet> ")).strip()


def _rate(printed: str) -> float:
    """The last rate that iperf has printed; 0 where it has not come through."""
    return ([0.0] + [float(number) * _UNITS[unit] for number, unit in _RATE.findall(printed)])[-1]
