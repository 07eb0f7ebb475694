"""The emulator does what a BMv2 does that runs beside it, on random entries and packets."""

from collections.abc import Iterator

import pytest

from tests.bmv2.emulated import Emulator
from tests.bmv2.live import VARIABLE, Bmv2, find_bmv2, running
from tests.bmv2.recording import SAMPLED_SEEDS
from tests.bmv2.sampling import sample
from tests.bmv2.session import record, replay

SEEDS = range(SAMPLED_SEEDS.stop, SAMPLED_SEEDS.stop + 60)


@pytest.fixture(scope="module")
def bmv2() -> Iterator[Bmv2]:
    command = find_bmv2()
    if command is None:
        pytest.skip(
            f"simple_switch_grpc is not on PATH and {VARIABLE} does not name it: that the emulator and a live BMv2 "
            "agree on fresh entries and packets is not checked here; BMv2's recorded answers are, in test_vectors"
        )
    with running(command) as switch:
        yield switch


def test_the_emulator_and_bmv2_agree(bmv2: Bmv2) -> None:
    emulator = Emulator()
    for seed in SEEDS:
        recording = record(bmv2, sample(emulator, seed))
        answer = replay(emulator, recording)
        for packet, sent, expected in zip(recording.session.packets, answer.sent, recording.answer.sent, strict=True):
            assert sent == expected, f"seed {seed}: {packet}"
        assert answer.counts == recording.answer.counts, f"seed {seed}"
