"""Small models on 8 ranks: the same as one rank with the whole batch where all is sent, and repeatable."""

import pytest
import torch
from torch import nn

from experiments.compression.methods import DENSE, METHODS
from experiments.compression.outcomes import FoldCurve
from experiments.compression.ranks import VirtualRanks
from experiments.compression.real_models import RESNET18
from experiments.compression.sending import StepPlan
from experiments.compression.star import HOSTS
from experiments.compression.tasks import FOLDS, TASKS, Examples, Task
from experiments.compression.training import IMAGES_PER_RANK, FlatModel, bucket_ranges, order_of, train
from hostlib.compression.choice import Choice, Collective, Precision, low_rank

STEPS = 40


def _examples() -> Examples:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(500, 6, generator=generator)
    return Examples(inputs, (inputs.sum(dim=1) > 0).long(), torch.arange(500) % FOLDS)


HALVES = Task("halves", _examples, lambda: nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2)), 0.05)


def _train(plan: StepPlan, remainder: Choice | None = None, *, corrects_momentum: bool = False) -> FoldCurve:
    return train(HALVES, 0, [(plan, remainder)] * STEPS, RESNET18, corrects_momentum=corrects_momentum)


def _alike(choice: Choice) -> tuple[Choice, ...]:
    return (choice,) * len(RESNET18.buckets)


def _plain() -> int:
    """Train as a script without ranks does; return how many test examples are right."""
    torch.manual_seed(0)
    model, examples = HALVES.model(), _examples()
    optimizer = torch.optim.SGD(model.parameters(), HALVES.learning_rate, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for batch in order_of((examples.folds != 0).nonzero().view(-1), 0, STEPS):
        optimizer.zero_grad()
        chosen = batch.view(-1)
        nn.functional.cross_entropy(model(examples.inputs[chosen]), examples.classes[chosen]).backward()
        optimizer.step()
        schedule.step()
    tested = examples.folds == 0
    return int((model(examples.inputs[tested]).argmax(dim=1) == examples.classes[tested]).sum())


@pytest.mark.parametrize("corrects_momentum", [False, True])
def test_all_sent_is_plain_training(corrects_momentum: bool) -> None:
    curve = _train(_alike(DENSE), corrects_momentum=corrects_momentum)
    assert abs(curve.correct[-1] - _plain()) <= 1
    assert curve.tested == 100
    assert curve.steps[-1] == STEPS


@pytest.mark.parametrize(
    "plan",
    [_alike(Choice(0.1, Precision.INT8, Collective.REDUCE_SCATTER)), _alike(low_rank(1))],
    ids=["sparse", "low rank"],
)
def test_a_training_repeats(plan: StepPlan) -> None:
    assert _train(plan) == _train(plan)


def test_choices_differ_in_what_they_train() -> None:
    tenth = _alike(Choice(0.01, Precision.FP16, Collective.ALL_GATHER))
    assert _train(tenth).correct != _train(_alike(DENSE)).correct


def test_a_remainder_brings_what_the_last_bucket_left_out() -> None:
    """Nearly nothing of the last bucket is sent in its step; with the remainder all of it is, a step later."""
    thousandth = Choice(0.001, Precision.FP32, Collective.ALL_GATHER)
    little = (*_alike(DENSE)[:-1], thousandth)
    late = _train(little, DENSE)
    assert abs(late.correct[-1] - _plain()) <= 3
    assert _train(little).correct != late.correct


def test_each_rank_has_its_own_part_of_a_batch() -> None:
    order = order_of(torch.arange(400), fold=0, steps=3)
    assert order.shape == (3, HOSTS, IMAGES_PER_RANK)
    assert len(set(order.flatten().tolist())) == order.numel()


def test_a_flat_gradient_is_cut_in_the_proportions_of_real_buckets() -> None:
    ranges = bucket_ranges(11_689, RESNET18)
    assert [part.stop - part.start for part in ranges] == [513, 7213, 3963]
    assert (ranges[0].start, ranges[-1].stop) == (0, 11_689)


def test_a_flat_model_has_the_last_parameters_first() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    flat = FlatModel(model)
    assert [tuple(each.shape) for each in flat.parameters] == [(1,), (1, 3), (3,), (3, 2)]
    flat.weights[0] = 7.0
    assert model[1].bias.item() == 7.0


def test_low_rank_is_of_whole_matrices() -> None:
    """The mean of all ranks is of the rank that is sent, so it comes as it is; no rank's own gradient is."""
    low = torch.outer(torch.arange(1.0, 21), torch.arange(1.0, 31)).view(-1)
    noise = torch.randn(HOSTS, 600, generator=torch.Generator().manual_seed(2))
    gradients = low + noise - noise.mean(dim=0)
    vector = torch.ones(HOSTS, 4)
    flat = list(torch.cat([vector, gradients], dim=1))
    mean = VirtualRanks(0.0).low_rank_mean(flat, [torch.zeros(4), torch.zeros(20, 30)], 1)
    torch.testing.assert_close(mean, torch.cat([vector[0], low]), rtol=1e-4, atol=1e-3)


def test_low_rank_of_some_buckets_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="low rank is of all buckets alike"):
        _train((low_rank(1), *_alike(DENSE)[1:]))


@pytest.mark.parametrize("name", sorted(TASKS))
def test_folds_test_everything_once(name: str) -> None:
    folds = TASKS[name].examples().folds
    counts = torch.bincount(folds, minlength=FOLDS)
    assert len(counts) == FOLDS
    assert counts.max() - counts.min() <= 0.01 * len(folds)


def test_characters_follow_their_context() -> None:
    examples = TASKS["characters"].examples()
    torch.testing.assert_close(examples.inputs[1, -1], examples.classes[0])
    torch.testing.assert_close(examples.inputs[1, :-1], examples.inputs[0, 1:])


def test_dgc_warms_up() -> None:
    plan_at = METHODS["DGC"].plan_at
    assert plan_at is not None
    ratios = []
    for step in (0, 7, 14, 21, 27, 599):
        plan = plan_at(step, 600, 3)
        ratios.append(plan[0].ratio)
    assert ratios == [0.25, 0.0625, 0.015625, 0.004, 0.001, 0.001]
