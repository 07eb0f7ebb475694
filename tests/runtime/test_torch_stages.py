"""Training in stages and replicas, on real processes, against the same model in one piece."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.pipelines import Schedule, gpipe, one_forward_one_backward, training_step
from tests.patience import PATIENCE_S

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

STEPS, BATCH, WIDTH, RATE = 3, 8, 6, 0.1


def layer(parameters: Any, x: Any) -> Any:
    weight, bias = parameters
    return torch.tanh(x @ weight + bias)


def squared_error(made: Any, wanted: Any) -> Any:
    return ((made - wanted) ** 2).mean()


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=2, hosts=2, devices=2) as started:
        yield started


def initial(stages: int) -> list[list[Any]]:
    numbers = np.random.default_rng(0)
    return [[numbers.normal(size=shape) for shape in ((WIDTH, WIDTH), (WIDTH,))] for _ in range(stages)]


def batches(micro_batches: int) -> Iterator[tuple[Any, Any]]:
    numbers = np.random.default_rng(1)
    for _ in range(STEPS):
        inputs, targets = numbers.normal(size=(2, micro_batches, BATCH, WIDTH))
        yield inputs, targets


def in_one_piece(stages: int, micro_batches: int) -> tuple[list[float], list[list[Any]]]:
    """Return the losses of gradient descent on whole batches, and the parameters in the end."""
    parameters = [[torch.from_numpy(each).requires_grad_() for each in stage] for stage in initial(stages)]
    every = [each for stage in parameters for each in stage]
    losses = []
    for inputs, targets in batches(micro_batches):
        x = torch.from_numpy(inputs).reshape(-1, WIDTH)
        for stage in parameters:
            x = layer(stage, x)
        value = squared_error(x, torch.from_numpy(targets).reshape(-1, WIDTH))
        for each, gradient in zip(every, torch.autograd.grad(value, every), strict=True):
            each.data -= RATE * gradient
        losses.append(value.item())
    return losses, [[each.detach().numpy() for each in stage] for stage in parameters]


@pytest.mark.parametrize(
    ("stages", "replicas", "micro_batches", "schedule"),
    [
        (1, 4, 1, gpipe),
        (2, 2, 4, gpipe),
        (2, 2, 4, one_forward_one_backward),
        (3, 2, 2, one_forward_one_backward),
        (2, 1, 3, one_forward_one_backward),
    ],
)
def test_replicas_of_stages_train_as_the_model_in_one_piece_does(
    runtime: rt.LocalRuntime, stages: int, replicas: int, micro_batches: int, schedule: Schedule
) -> None:
    from runtime.torch_stages import stages_of

    slices = [runtime.make_virtual_device_set().add_slice(replicas) for _ in range(stages)]
    parameters: Any = initial(stages)
    model = stages_of(
        [layer] * stages, squared_error, parameters, slices, learning_rate=RATE, micro_batches=micro_batches
    )

    @rt.program
    def step(parameters: Any, inputs: Any, targets: Any) -> Any:
        return training_step(model, parameters, inputs, targets, schedule)

    losses = []
    for inputs, targets in batches(micro_batches):
        loss, parameters = step(parameters, list(inputs), list(targets))
        losses.append(loss)
    expected, trained = in_one_piece(stages, micro_batches)
    assert [each.numpy(PATIENCE_S).item() for each in losses] == pytest.approx(expected, rel=1e-12)
    for devices, arrays, wanted in zip(slices, parameters, trained, strict=True):
        rows = rt.pmap(lambda x: x.unsqueeze(0), devices=devices, in_axes=None)
        for each, correct in zip(arrays, wanted, strict=True):
            copies = rows(each).numpy(PATIENCE_S)
            assert copies.shape == (replicas, *correct.shape)
            assert (copies == copies[0]).all()  # bit by bit
            np.testing.assert_allclose(copies[0], correct, rtol=1e-12, atol=1e-14)


def test_micro_batches_that_replicas_cannot_share_are_refused_by_name(runtime: rt.LocalRuntime) -> None:
    from runtime.torch_stages import stages_of

    slices = [runtime.make_virtual_device_set().add_slice(2)]
    model = stages_of([layer], squared_error, initial(1), slices, learning_rate=RATE, micro_batches=1)

    @rt.program
    def step(parameters: Any, inputs: Any, targets: Any) -> Any:
        return training_step(model, parameters, inputs, targets)

    odd = [np.zeros((3, WIDTH))]
    with pytest.raises(ValueError, match=r"backward-0: axis 0 of float64\[3,6\] cannot be cut into 2 equal blocks"):
        step(initial(1), odd, odd)


def test_stages_that_do_not_fit_each_other_are_refused_by_name(runtime: rt.LocalRuntime) -> None:
    from runtime.torch_stages import stages_of

    one, two = (runtime.make_virtual_device_set().add_slice(size) for size in (1, 2))

    def made(parameters: list[list[Any]], slices: list[rt.VirtualSlice]) -> None:
        stages_of([layer] * 2, squared_error, parameters, slices, learning_rate=RATE, micro_batches=1)

    with pytest.raises(ValueError, match="expected as many replicas of each stage, got 1, 2"):
        made(initial(2), [one, two])
    with pytest.raises(ValueError, match="got 2 layers, 2 lists of parameters and 1 slices"):
        made(initial(2), [two])
    with pytest.raises(ValueError, match="parameters: stage 1 has none"):
        made([*initial(1), []], [two, two])
