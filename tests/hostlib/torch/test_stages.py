"""Passes of stages are seen while profiling, whatever the schedule, and only where PyTorch is as we know it."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops
from torch.distributed.pipelining.stage import _PipelineStageBase

from hostlib.torch import stages
from hostlib.torch.events import StagePass
from hostlib.torch.pipelines import Action, Pass, simulated
from hostlib.torch.stages import StageTee
from tests.hostlib.torch import seen_passes
from tests.hostlib.torch.gloo_ranks import run_ranks

_F, _B, _W = Pass.FORWARD, Pass.BACKWARD, Pass.WEIGHTS
_ORDERS = {
    "GPipe": ["F0 F1 F2 F3 B0 B1 B2 B3", "F0 F1 F2 F3 B0 B1 B2 B3"],
    "1F1B": ["F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"],
}
"""By rank."""
_KINDS = {"FORWARD": _F, "FULL_BACKWARD": _B, "BACKWARD_INPUT": _B, "BACKWARD_WEIGHT": _W}
_METHODS = ("forward_one_chunk", "backward_one_chunk", "backward_weight_one_chunk")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return run_ranks("seen_passes", 2, tmp_path_factory.mktemp("ranks"))


def expected(schedule: str) -> list[list[tuple[Pass, int, int]]]:
    """The passes of each rank, in order."""
    if schedule in _ORDERS:
        return [
            [({"F": _F, "B": _B}[kind], rank, int(number)) for kind, number in order.split()]
            for rank, order in enumerate(_ORDERS[schedule])
        ]
    return [
        [
            (_KINDS[action.computation_type.name], action.stage_index, action.microbatch_index)
            for action in actions
            if action is not None and action.computation_type.name in _KINDS
        ]
        for actions in get_schedule_ops(schedule, 2, seen_passes.MICRO_BATCHES)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", seen_passes.SCHEDULES)
def test_all_passes_of_a_schedule_are_seen_in_their_order(seen: list[Any], schedule: str) -> None:
    tables: dict[int, list[Action]] = {}
    for rank, result in enumerate(seen):
        found = result[schedule]
        for kind, group, stage, micro_batch, begin_ns, end_ns in found["passes"]:
            assert group == "0"
            tables.setdefault(rank, []).append(Action(Pass(kind), stage, micro_batch, begin_ns / 1e9, end_ns / 1e9))
            # No rank waits for another one in the middle of a pass, so a pass is all computation.
            assert all(end <= begin_ns or begin >= end_ns for begin, end in found["waits"])
        assert [action[:3] for action in tables[rank]] == expected(schedule)[rank]
        assert found["later"] == 0
    assert set(simulated(tables).windows) == {(0, 1), (1, 0)}


class _Base:
    """A stage, as PyTorch has it."""

    group = SimpleNamespace(group_name="g")
    stage_index = 3
    device = torch.device("cpu")

    def forward_one_chunk(self, fwd_chunk_id: int, args: object) -> object:
        del fwd_chunk_id  # so PyTorch calls it
        if args is None:
            raise RuntimeError("the job's own mistake")
        return args

    def backward_one_chunk(self, bwd_chunk_id: int, loss: object = None) -> None:
        pass

    def backward_weight_one_chunk(self, bwd_chunk_id: int) -> None:
        pass


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> type[_Base]:
    """The class of stages in a PyTorch of this test."""
    found = type("_PipelineStageBase", (_Base,), {name: vars(_Base)[name] for name in _METHODS})
    module: Any = ModuleType(stages._MODULE)
    module._PipelineStageBase = found
    monkeypatch.setitem(sys.modules, stages._MODULE, module)
    return found


def test_methods_are_as_they_were_when_nothing_is_told_any_more(base: type[_Base]) -> None:
    plain = {name: vars(base)[name] for name in _METHODS}
    told: list[StagePass] = []
    tee = StageTee(told.append)
    result = object()
    assert base().forward_one_chunk(5, result) is result
    base().backward_one_chunk(bwd_chunk_id=6)
    assert [each[:4] for each in told] == [(_F, "g", 3, 5), (_B, "g", 3, 6)]
    assert all(each.begin_ns <= each.end_ns for each in told)
    tee.remove()
    assert {name: vars(base)[name] for name in _METHODS} == plain


def test_an_error_of_a_stage_is_the_job_s_own(base: type[_Base]) -> None:
    told: list[StagePass] = []
    StageTee(told.append)
    with pytest.raises(RuntimeError, match="the job's own mistake"):
        base().forward_one_chunk(5, None)
    assert told == []


def test_stages_that_we_do_not_know_run_as_they_are(base: type[_Base]) -> None:
    told: list[StagePass] = []
    StageTee(told.append)
    for strange in ({"stage_index": "first"}, {"device": None}, {"group": 7}, {"device": torch.device("cuda")}):
        stage = type("Strange", (base,), strange)()
        assert stage.forward_one_chunk(5, "result") == "result"
    assert told == []


@pytest.mark.parametrize("lacking", _METHODS)
def test_a_pytorch_with_other_stages_is_left_alone(base: type[_Base], lacking: str) -> None:
    delattr(base, lacking)
    before = dict(vars(base))
    tee = StageTee(lambda _: None)
    assert dict(vars(base)) == before
    tee.remove()


def test_pipelines_may_be_imported_later(monkeypatch: pytest.MonkeyPatch, base: type[_Base]) -> None:
    module = sys.modules[stages._MODULE]
    monkeypatch.delitem(sys.modules, stages._MODULE)
    told: list[StagePass] = []
    tee = StageTee(told.append)
    base().forward_one_chunk(1, "result")
    sys.modules[stages._MODULE] = module
    tee.look()
    base().forward_one_chunk(2, "result")
    assert [each.micro_batch for each in told] == [2]


def test_pytorch_has_the_stages_that_we_know() -> None:
    assert all(callable(vars(_PipelineStageBase).get(name)) for name in _METHODS)
