"""Every construct does in the emulator, and in the interpreter, what it does on BMv2."""

import json
import shutil
from collections.abc import Callable
from functools import cache

import pytest

from tests.bmv2.constructs.programs import FOLDER, MANIFEST, NAMES, Construct, construct, source_hashes
from tests.bmv2.constructs.recording import COMPILER, compiled, compiler_version
from tests.bmv2.constructs.sampling import sample
from tests.bmv2.constructs.switches import CompiledConstruct, InterpretedConstruct, answer
from tests.bmv2.live import VARIABLE, find_bmv2, running
from tests.bmv2.vectors import FOLDER as VECTORS
from tests.bmv2.vectors import read_vectors

FRESH_SEEDS = range(100, 102)
RANDOM_SEEDS = range(1000, 1010)

emulated = cache(lambda name: CompiledConstruct(construct(name)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("switch_of", [CompiledConstruct, InterpretedConstruct], ids=["emulator", "interpreter"])
def test_answers_are_those_that_bmv2_gave(
    switch_of: Callable[[Construct], CompiledConstruct | InterpretedConstruct], name: str
) -> None:
    found, vectors = construct(name), read_vectors(VECTORS / "constructs" / f"{name}.json")
    assert vectors.program_sha256 == found.sha256, "record anew: python -m tests.bmv2.constructs.recording"
    assert vectors.recordings
    switch = emulated(name) if switch_of is CompiledConstruct else switch_of(found)
    for number, recording in enumerate(vectors.recordings):
        sent = answer(switch, recording.session)
        for packet, made, expected in zip(recording.session.packets, sent, recording.answer.sent, strict=True):
            assert made == expected, f"session {number}, BMv2 {vectors.bmv2}: {packet.octets.hex()}"


@pytest.mark.parametrize("name", NAMES)
def test_emulator_and_interpreter_agree(name: str) -> None:
    interpreted = InterpretedConstruct(construct(name))
    for seed in RANDOM_SEEDS:
        session = sample(name, seed)
        both = zip(session.packets, answer(emulated(name), session), answer(interpreted, session), strict=True)
        for packet, made, expected in both:
            assert made == expected, f"seed {seed}: {packet.octets.hex()}"


@pytest.mark.parametrize("name", NAMES)
def test_emulator_and_a_live_bmv2_agree(name: str) -> None:
    command = find_bmv2()
    if command is None:
        pytest.skip(
            f"simple_switch_grpc is not on PATH and {VARIABLE} does not name it: fresh packets are not compared"
        )
    with running(command, construct(name).pipeline.message) as bmv2:
        for seed in FRESH_SEEDS:
            session = sample(name, seed)
            both = zip(session.packets, answer(emulated(name), session), answer(bmv2, session), strict=True)
            for packet, made, expected in both:
                assert made == expected, f"seed {seed}: {packet.octets.hex()}"


def test_programs_are_compiled_from_their_sources() -> None:
    assert {"arithmetic", "stacks", "tables"} <= set(NAMES)
    assert json.loads(MANIFEST.read_text())["sources"] == source_hashes(), (
        "compile anew: python -m tests.bmv2.constructs.recording"
    )


@pytest.mark.parametrize("name", NAMES)
def test_compiling_again_gives_the_same(name: str) -> None:
    if not shutil.which(COMPILER):
        pytest.skip(f"{COMPILER} is not on PATH: that it still makes the committed programs is not checked here")
    version = json.loads(MANIFEST.read_text())["p4c"]
    if compiler_version() != version:
        pytest.skip(f"{COMPILER} on PATH is not version {version}, which made the committed programs")
    program, p4info = compiled(name)
    assert program == (FOLDER / f"{name}.json").read_text()
    assert p4info == (FOLDER / f"{name}.p4info.txtpb").read_text()
