"""The emulator does what a BMv2 does that runs beside it, on random entries and packets."""

import pytest

from tests.bmv2.emulated import Emulator
from tests.bmv2.live import VARIABLE, Bmv2, find_bmv2, running
from tests.bmv2.recording import SAMPLED_SEEDS
from tests.bmv2.sampling import sample
from tests.bmv2.session import Session, Switch, record, replay
from tests.bmv2.small_programs import PROGRAMS, EmulatedProgram, SmallProgram
from tests.bmv2.small_sessions import SMALL_SEEDS as RECORDED
from tests.bmv2.small_sessions import SMALL_SESSIONS

SEEDS = range(SAMPLED_SEEDS.stop, SAMPLED_SEEDS.stop + 60)


SMALL_SEEDS = range(RECORDED.stop, RECORDED.stop + 2)


@pytest.fixture(scope="module")
def command() -> str:
    found = find_bmv2()
    if found is None:
        pytest.skip(
            f"simple_switch_grpc is not on PATH and {VARIABLE} does not name it: that the emulator and a live BMv2 "
            "agree on fresh entries and packets is not checked here; BMv2's recorded answers are, in test_vectors"
        )
    return found


def test_the_emulator_and_bmv2_agree(command: str) -> None:
    emulator = Emulator()
    with running(command) as bmv2:
        compare(bmv2, emulator, {seed: sample(emulator, seed) for seed in SEEDS})


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_they_agree_on_small_programs(command: str, program: SmallProgram) -> None:
    with running(command, program.pipeline.message) as bmv2:
        sessions = {seed: SMALL_SESSIONS[program](seed) for seed in SMALL_SEEDS}
        compare(bmv2, EmulatedProgram(program), sessions)


def compare(bmv2: Bmv2, emulator: Switch, sessions: dict[int, Session]) -> None:
    for seed, session in sessions.items():
        recording = record(bmv2, session)
        answer = replay(emulator, recording)
        for packet, sent, expected in zip(recording.session.packets, answer.sent, recording.answer.sent, strict=True):
            assert sent == expected, f"seed {seed}: {packet}"
        assert answer.counts == recording.answer.counts, f"seed {seed}"
