"""Data parallelism over islands."""

from collections.abc import Iterator

import numpy as np
import pytest

import runtime as rt
from tests.patience import PATIENCE_S

torch = pytest.importorskip("torch")
replicas_on = pytest.importorskip("runtime.torch_replicas").replicas_on

pytestmark = pytest.mark.slow
RATE = 0.1
WEIGHTS, BIAS = np.arange(6.0).reshape(3, 2) / 10, np.array([1.0, -1.0])


def model(parameters: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    weights, bias = parameters
    return x @ weights + bias


def squares(made: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return ((made - wanted) ** 2).sum(-1).mean()


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=3, hosts=2, devices=2) as started:
        yield started


@pytest.mark.parametrize(("islands", "devices"), [(1, 3), (2, 1), (2, 4), (3, 2)])
def test_a_step_is_that_of_the_whole_batch(runtime: rt.LocalRuntime, islands: int, devices: int) -> None:
    numbers = np.random.default_rng(0)
    inputs, targets = (numbers.normal(size=(islands, 4 * devices, width)) for width in (3, 2))
    made = runtime.make_virtual_device_set()
    slices = [made.add_slice(devices, island=f"island-{number}") for number in range(islands)]
    replicas = replicas_on(model, squares, [WEIGHTS, BIAS], slices, learning_rate=RATE)
    step = rt.program(lambda parameters, inputs, targets: replicas(parameters, inputs, targets))
    loss, updated = step([[WEIGHTS, BIAS]] * islands, list(inputs), list(targets))

    x, wanted = inputs.reshape(-1, 3), targets.reshape(-1, 2)
    errors = x @ WEIGHTS + BIAS - wanted
    assert loss.numpy(PATIENCE_S) == pytest.approx((errors**2).sum(-1).mean())
    of_weights, of_bias = 2 * x.T @ errors / len(x), 2 * errors.mean(0)
    for weights, bias in updated:
        np.testing.assert_allclose(weights.numpy(PATIENCE_S), WEIGHTS - RATE * of_weights, rtol=1e-12)
        np.testing.assert_allclose(bias.numpy(PATIENCE_S), BIAS - RATE * of_bias, rtol=1e-12)
        assert (weights.numpy() == updated[0][0].numpy()).all()


def test_what_crosses_islands_is_the_size_of_the_model(runtime: rt.LocalRuntime) -> None:
    made = runtime.make_virtual_device_set()
    slices = [made.add_slice(4, island=f"island-{number}") for number in range(2)]
    replicas = replicas_on(model, squares, [WEIGHTS, BIAS], slices, learning_rate=RATE)
    step = rt.program(lambda parameters, inputs, targets: replicas(parameters, inputs, targets))
    program = step.trace([[WEIGHTS, BIAS]] * 2, [np.zeros((4, 3))] * 2, [np.zeros((4, 2))] * 2)
    gradients = [call for _, call in program.nodes() if call.name == "gradients"]
    assert [each.outputs[0].spec.shape for each in gradients] == [(12,)] * 2  # loss and 8 parameters, in 4 blocks


def test_slices_of_different_sizes_and_missing_parts_are_refused(runtime: rt.LocalRuntime) -> None:
    made = runtime.make_virtual_device_set()
    slices = [made.add_slice(2), made.add_slice(1)]
    with pytest.raises(ValueError, match="slices: expected some, of one size, got 2, 1"):
        replicas_on(model, squares, [WEIGHTS, BIAS], slices, learning_rate=RATE)
    with pytest.raises(ValueError, match="slices: expected some, of one size, got none"):
        replicas_on(model, squares, [WEIGHTS, BIAS], [], learning_rate=RATE)
    with pytest.raises(ValueError, match="parameters: expected some"):
        replicas_on(model, squares, [], slices[:1], learning_rate=RATE)
    replicas = replicas_on(model, squares, [WEIGHTS, BIAS], slices[:1], learning_rate=RATE)
    with pytest.raises(ValueError, match="for each of 1 islands, got 1, 2 and 1"):
        replicas([[WEIGHTS, BIAS]], [0, 0], [0])
