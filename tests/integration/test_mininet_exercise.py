"""The class-room exercise of docs/mininet.md, command by command as the page has them, in Mininet itself."""

import re
import time

import pytest

from tests.docs.pages import ROOT, code_lines
from tests.mininet_cli import CUSTOM, TOPOLOGY, MininetCli, mininet
from tests.patience import PATIENCE_S

PAGE = ROOT / "docs/mininet.md"
_RATE = re.compile(r"([\d.]+) ([KMG]?)bits/sec")
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_SENDERS = re.compile(r"h([01]) (iperf -c|wait)")

_EXPECTED = {
    "mininet> net": [r"t0-eth3:a0-eth1"],
    "mininet> pingall": [r"Results: 0% dropped \(12/12 received\)"] * 2,
    "mininet> iperf h0 h2": [r"Results: \['[\d.]+ .bits/sec"],
    "trainyard show rules": [r"t0 +tcp 10\.0\.1\.1:50001 > 10\.0\.2\.1:5001 +a0, port 3 +7"],
    "trainyard show paths": [r"h1\.0>t0\.0>a0\.0", r"h1\.0>t0\.0>a1\.0"],
    "trainyard show links": [r"t0\.0>a0 .* down"],
    "mininet> link t0 a0 down": [r"\A\Z"],
    "mininet> link t0 a0 up": [r"\A\Z"],
    "mininet> link h1 t0 down": [r"\A\Z"],
    "mininet> h0 ping -c 1 -W 1 h1": [r"100% packet loss"],
}
"""What the commands print, each time that the page has them; senders are looked at together."""


def test_every_command_of_the_page_does_what_it_says() -> None:
    lines = code_lines(PAGE)
    assert f"sudo mn --custom {CUSTOM} --topo trainyard,{TOPOLOGY}" in lines
    expected = {command: list(patterns) for command, patterns in _EXPECTED.items()}
    sent: list[str] = []
    with mininet() as cli:
        for line in lines:
            if _SENDERS.match(line.removeprefix("mininet> ")):
                sent.append(_typed(cli, line))
            elif line.startswith(("mininet> ", "python ", "trainyard show")):
                patterns = expected.get(line, [])
                _try(cli, line, patterns.pop(0) if patterns else "")
        ended = cli.leave()
    assert not any(expected.values())
    assert "Done" in ended
    # Three rounds: a command in the background, one in the foreground, and what the first has printed.
    rounds = [
        (_rate(background + waited), _rate(foreground))
        for background, foreground, waited in zip(sent[0::3], sent[1::3], sent[2::3], strict=True)
    ]
    fair, marked, planned = rounds
    assert min(fair) > 0.1 * max(fair), sent
    assert marked[0] > 3 * marked[1], sent
    assert planned[1] > 3 * planned[0], sent


def _try(cli: MininetCli, line: str, pattern: str) -> None:
    """Type a command; what other terminals show is looked at until it is what the page says."""
    by = time.monotonic() + PATIENCE_S
    while not re.search(pattern, printed := _typed(cli, line)):
        if not line.startswith("trainyard") or time.monotonic() > by:
            pytest.fail(f"{line} printed {printed}, expected {pattern}")


def _typed(cli: MininetCli, line: str) -> str:
    """What a command prints: it is typed at Mininet's prompt, or in a shell outside all hosts."""
    if line.startswith("python "):
        return cli.type(f"sh sleep infinity | .venv/bin/{line} >/dev/null &")
    if line.startswith("trainyard "):
        return cli.type(f"sh COLUMNS=200 .venv/bin/{line}")
    return cli.type(line.removeprefix("mininet> ")).strip()


def _rate(printed: str) -> float:
    """The last rate that iperf has printed; 0 where it has not come through."""
    return ([0.0] + [float(number) * _UNITS[unit] for number, unit in _RATE.findall(printed)])[-1]
