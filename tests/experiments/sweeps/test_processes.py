import os
from pathlib import Path

import pytest

from experiments.sweeps.processes import Failure, on_processes
from tests.experiments.sweeps.work import squared, wait_for_or_sleep


@pytest.mark.parametrize("workers", [1, 3])
def test_failing_items_leave_others_alone(workers: int) -> None:
    answers = dict(on_processes(squared, range(8), workers))
    assert answers == {
        **{number: number * number for number in (0, 1, 2, 5, 6, 7)},
        3: Failure("ValueError: no three"),
        4: Failure("its process ended with status 9"),
    }


def test_no_items_give_no_answers() -> None:
    assert list(on_processes(squared, [], 2)) == []


def test_closing_early_ends_the_processes(tmp_path: Path) -> None:
    """While one item is answered, another would take ten minutes."""
    note = tmp_path / "process"
    answers = on_processes(wait_for_or_sleep, [(note, True), (note, False)], 2)
    assert next(answers)[1] == 1
    answers.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
