"""What a switch has made shorter is parsed by the next one as far as its program goes."""

import asyncio
import random
from itertools import pairwise

from emulator.compiler.program import compile_program
from emulator.wired_fabric import WiredFabric
from tests.bmv2.constructs.programs import FOLDER
from tests.emulator.lab import LAB, packets_of, run
from tests.namespaces import Namespaces
from tests.patience import until
from topologies.fabric import Cable, Fabric

SKIP = b"\xe1\xf8"
"""Asks a switch to leave out the 31 bytes that follow, and to parse the label behind them."""
LABEL = b"\x00\x01\x21\x05"
SWITCHES = 20
"""Each makes a frame 27 bytes shorter: 4 bytes of a report take the place of what is left out."""
HOPS = ("host1", *(f"switch{number}" for number in range(SWITCHES)), "host2")
LINE = Fabric(("host1", "host2"), HOPS[1:-1], tuple(Cable(ends, 1e12, 0.0) for ends in pairwise(HOPS)), 1)


def test_the_last_of_many_switches_parses_what_the_first_could_not_reach(lab: Namespaces) -> None:
    program = compile_program((FOLDER / "stacks.json").read_text(), is_wired=True)
    tail = b"\x00" + random.Random(1).randbytes(700)
    frame = SKIP + bytes(8) + SWITCHES * (bytes(23) + LABEL) + tail

    async def scenario() -> None:
        made = WiredFabric(LINE, program, {("host1", 0): "f1", ("host2", 0): "f2"}, namespace=lab.file(LAB))
        serving = asyncio.create_task(made.serve(lambda _: None))
        await made.is_passing.wait()
        async with made.exclusive:
            for switch in made.switches.values():
                switch.clear()
        with packets_of(lab, "e1") as sender, packets_of(lab, "e2") as receiver:
            sender.send(frame)
            await until(lambda: made.wire_counts.sent + sum(made.drops(name).too_long for name in made.switches) > 0)
            assert made.wire_counts.sent == 1
            octets = receiver.recv(65536)
        assert (octets[:2], octets[6:]) == (SKIP, LABEL + tail)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    run(scenario)
