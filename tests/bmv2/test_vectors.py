"""The emulator does what BMv2 did: its recorded answers to the same entries and packets."""

from pathlib import Path

import pytest

from tests.bmv2.emulated import Emulator
from tests.bmv2.session import replay
from tests.bmv2.vectors import FOLDER, program_sha256, read_vectors

FILES = sorted(FOLDER.glob("*.json"))


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    return Emulator()


def test_there_are_vectors() -> None:
    assert [path.name for path in FILES] == ["pipeline_tests.json", "random.json"]
    assert all(read_vectors(path).recordings for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_emulator_answers_as_bmv2_did(emulator: Emulator, path: Path) -> None:
    vectors = read_vectors(path)
    assert vectors.program_sha256 == program_sha256(), (
        f"{path.name} was recorded for another program: record anew with `python -m tests.bmv2.recording`, "
        "which needs simple_switch_grpc"
    )
    for number, recording in enumerate(vectors.recordings):
        answer = replay(emulator, recording)
        for packet, sent, expected in zip(recording.session.packets, answer.sent, recording.answer.sent, strict=True):
            assert sent == expected, f"session {number} of {path.name}, BMv2 {vectors.bmv2}: {packet}"
        assert answer.counts == recording.answer.counts, f"session {number} of {path.name}, BMv2 {vectors.bmv2}"
