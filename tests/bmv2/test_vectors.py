"""The emulator does what BMv2 did: its recorded answers to the same entries and packets."""

from pathlib import Path

import pytest

from tests.bmv2.emulated import Emulator
from tests.bmv2.session import Switch, replay
from tests.bmv2.small_programs import PROGRAMS, EmulatedProgram, SmallProgram
from tests.bmv2.vectors import FOLDER, program_sha256, read_vectors

FILES = [FOLDER / "pipeline_tests.json", FOLDER / "random.json"]


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    return Emulator()


def test_there_are_vectors() -> None:
    names = {path.name for path in FILES} | {f"{program.name}.json" for program in PROGRAMS}
    assert {path.name for path in FOLDER.glob("*.json")} == names
    assert all(read_vectors(path).recordings for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_emulator_answers_as_bmv2_did(emulator: Emulator, path: Path) -> None:
    compare(emulator, path, program_sha256())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_small_programs_do_what_they_did_on_bmv2(program: SmallProgram) -> None:
    compare(EmulatedProgram(program), FOLDER / f"{program.name}.json", program_sha256(program.json))


def compare(switch: Switch, path: Path, program: str) -> None:
    vectors = read_vectors(path)
    assert vectors.program_sha256 == program, (
        f"{path.name} was recorded for another program: record anew with `python -m tests.bmv2.recording`, "
        "which needs simple_switch_grpc"
    )
    for number, recording in enumerate(vectors.recordings):
        answer = replay(switch, recording)
        for packet, sent, expected in zip(recording.session.packets, answer.sent, recording.answer.sent, strict=True):
            assert sent == expected, f"session {number} of {path.name}, BMv2 {vectors.bmv2}: {packet}"
        assert answer.counts == recording.answer.counts, f"session {number} of {path.name}, BMv2 {vectors.bmv2}"
