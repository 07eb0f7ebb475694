"""What is recorded of collectives and of the optimizer's steps."""

from collections.abc import Iterator

import pytest
import torch
from torch.distributed import Work

from hostlib.torch.events import Completion, StepBegin, StepEnd
from hostlib.torch.recorder import Recorder


class _Ended(Work):
    """A collective that has ended."""

    def is_completed(self) -> bool:
        return True


class _Failed(_Ended):
    def is_completed(self) -> bool:
        raise RuntimeError("connection reset")


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    recorder.start_profiling()
    yield recorder
    recorder.close()


def _step_after(recorder: Recorder, work: Work) -> list[type]:
    """Return the kinds of events from a collective to the end of a step."""
    number = recorder.issued("allreduce_", "0", (8, None, ()))
    assert number is not None
    recorder.returned(number, work.boxed())
    recorder.take()
    torch.optim.SGD([torch.ones(1, requires_grad=True)]).step()
    return [type(event) for event in recorder.take()]


@pytest.mark.skipif(torch.cuda.is_available(), reason="work of NCCL does not tell when it has ended")
def test_what_has_ended_when_the_step_begins_is_noted_before_it_and_once(recorder: Recorder) -> None:
    assert _step_after(recorder, _Ended()) == [Completion, StepBegin, StepEnd]


def test_a_collective_that_has_failed_does_not_keep_the_step_from_going_on(recorder: Recorder) -> None:
    assert _step_after(recorder, _Failed()) == [StepBegin, StepEnd]
