"""What is committed of the small programs is what p4c makes of their sources."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.bmv2.small_programs import COMPILER, EVERY_PROGRAM, FOLDER, SmallProgram, compile_program_into


def meaning(path: Path) -> Any:
    """A JSON without what differs from one version of p4c to another and means nothing."""
    document = json.loads(path.read_text())
    del document["__meta__"]
    return document


def test_every_source_is_a_program() -> None:
    assert {path.stem for path in FOLDER.glob("*.p4")} == {program.name for program in EVERY_PROGRAM}


@pytest.mark.parametrize("program", EVERY_PROGRAM, ids=lambda program: program.name)
def test_the_compiled_program_is_that_of_its_source(program: SmallProgram, tmp_path: Path) -> None:
    if not shutil.which(COMPILER):
        pytest.skip(f"{COMPILER} is not on PATH: that the small programs are those of their sources is not checked")
    compile_program_into(program, tmp_path)
    assert meaning(tmp_path / program.json.name) == meaning(program.json)
    assert (tmp_path / program.p4info.name).read_text() == program.p4info.read_text()
