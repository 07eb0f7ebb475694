"""The interpreter does what p4testgen, p4c's own symbolic executor, says that programs do."""

import json

import pytest

from tests.p4src.tna import stored, vectors
from tests.p4src.tna.program import RunningProgram
from tests.p4src.tna.switch import Conditions, Sent, Switch
from tests.p4src.tna.vectors import KeyPart, Output, Vector, VectorEntry

PROGRAMS = (*stored.SMALL_PROGRAMS, pytest.param("trainyard", marks=pytest.mark.slow))
TIMES = Conditions(ingress_time_ns=1, egress_time_ns=2)


def test_programs_and_vectors_are_of_the_sources_as_they_are() -> None:
    assert json.loads(stored.SOURCE_HASHES.read_text()) == stored.source_hashes(), (
        "a source has changed: record anew with `python -m tests.p4src.tna.recording`, which needs p4c's tools"
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_interpreter_answers_as_p4testgen_says(name: str) -> None:
    translated = stored.translated(stored.path_of(name))
    outputs = set()
    for number, vector in enumerate(vectors.read(vectors.FOLDER / f"{name}.json.gz")):
        program = translated.start()
        for entry in vector.entries:
            write_entry(program, entry)
        for cell in vector.registers:
            values = cell.values if len(cell.values) > 1 else cell.values[0]
            program.objects[_label(cell.register)].cells[cell.index] = values
        sent = Switch(program).process(bytes.fromhex(vector.octets), vector.port, TIMES)
        check(sent, vector, f"{name}, vector {number}")
        outputs.add(vector.output is None)
    assert outputs == {False, True}


def write_entry(program: RunningProgram, entry: VectorEntry) -> None:
    """Write what a vector has of the control plane; p4testgen names fields and arguments, in any order."""
    table = program.tables[_label(entry.table)]
    action = next(name for name in table.actions if name == _label(entry.action))
    arguments = [entry.arguments[name] for name in table.actions[action].parameters]
    if entry.key is None:
        table.set_default(action, arguments)
    else:
        parts = {part.field: part for part in entry.key}
        table.insert([_match(parts[field.name], field.bits) for field in table.key], action, arguments)


def _label(name: str) -> str:
    return name.removeprefix("pipe.")


def _match(part: KeyPart, bits: int) -> tuple[int, int]:
    mask = (1 << bits) - 1 if part.mask is None else part.mask
    if part.prefix_length is not None:
        mask = (1 << part.prefix_length) - 1 << bits - part.prefix_length
    return part.value & mask, mask


def check(sent: Sent | None, vector: Vector, name: str) -> None:
    """Compare what has left with what a vector expects."""
    if vector.output is None:
        assert sent is None, name
        return
    assert sent is not None, name
    assert sent.port == vector.output.port, name
    assert _known(sent.octets, vector.output) == _known(bytes.fromhex(vector.output.octets), vector.output), name


def _known(octets: bytes, output: Output) -> tuple[int, int]:
    """Length and bits of a packet without those that nobody can foretell."""
    bits = int.from_bytes(octets, "big")
    for at, count in output.ignored:
        bits &= ~((1 << count) - 1 << 8 * len(octets) - at - count)
    return len(octets), bits
