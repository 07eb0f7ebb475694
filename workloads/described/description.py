"""A model as data: what a sample is, and its layers, one after the other, in blocks that repeat.

Parts of a model in the order of its layers are what everything else works with: ``ModelDescription.blocks``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from topologies.problems import Location, Problem, validation_error
from workloads.described.devices import Device
from workloads.described.image_layers import Convolution, GlobalPool, Patches, Pool, SqueezeExcitation
from workloads.described.layers import (
    Attention,
    Dimension,
    Embedding,
    Given,
    LatentAttention,
    Layer,
    LayerNumbers,
    Linear,
    MixtureOfExperts,
    Mlp,
    Norm,
)
from workloads.described.shapes import Shape, ShapeError
from workloads.field_types import FlowsPerPair, Name, ScenarioModel

MOST_LAYERS = 10_000
"""The most layers of a model, repetitions counted."""

_SIMPLE = (
    Embedding | Norm | Attention | LatentAttention | Mlp | MixtureOfExperts | Linear | Given
    | Convolution | Pool | GlobalPool | Patches | SqueezeExcitation
)  # fmt: skip


class Residual(Layer):
    """Layers whose result is added to what they get, or to that of the ``shortcut``'s layers."""

    type: Literal["residual"] = "residual"
    layers: Annotated[tuple["AnyLayer", ...], Field(min_length=1)]
    shortcut: tuple["AnyLayer", ...] = ()


class Block(Layer):
    """Layers that follow each other, ``repeat`` times over. A pipeline is cut between blocks, never inside one."""

    type: Literal["block"] = "block"
    repeat: Annotated[int, Field(strict=True, gt=0, le=4096)] = 1
    layers: Annotated[tuple["AnyLayer", ...], Field(min_length=1)]


AnyLayer = Annotated[_SIMPLE | Residual | Block, Field(discriminator="type")]
"""A layer; ``type`` selects its class."""

Residual.model_rebuild()
Block.model_rebuild()


class Image(ScenarioModel):
    """A square image."""

    size: Dimension
    channels: Dimension = 3


@dataclass(frozen=True, slots=True)
class Part:
    """A layer of the model with its numbers, and its measured durations for one sample, where there are any.

    Each of its activations has ``element_bytes``.
    """

    name: str
    numbers: LayerNumbers
    measured_s: tuple[float, float] | None = None
    element_bytes: int = 2


@dataclass(frozen=True, slots=True)
class ModelBlock:
    """Layers that a pipeline keeps together, and the shape of what they give."""

    name: str
    parts: tuple[Part, ...]
    output: Shape


class ModelDescription(ScenarioModel):
    """A model: a sample is a row of ``tokens`` or an ``image``, and goes through the ``layers``.

    ``element_bytes`` is the size of a parameter and of an activation, ``gradient_bytes`` that of a gradient on the
    network. ``device`` is what it runs on unless a job says otherwise. ``source`` says where the numbers are from.

    Raises pydantic.ValidationError, with the place of each layer that does not fit the one before it.
    """

    name: Name
    source: Name | None = None
    tokens: Dimension | None = None
    image: Image | None = Field(default=None, validate_default=True)
    element_bytes: Annotated[int, Field(strict=True, gt=0, le=8)] = 2
    gradient_bytes: Annotated[int, Field(strict=True, gt=0, le=8)] = 2
    flows_per_pair: FlowsPerPair | None = None
    device: Device | None = None
    layers: Annotated[tuple[AnyLayer, ...], Field(min_length=1)]

    @field_validator("image")
    @classmethod
    def _a_sample_is_one_thing(cls, image: Image | None, info: ValidationInfo) -> Image | None:
        if "tokens" in info.data and (image is None) == (info.data["tokens"] is None):
            raise ValueError("expected exactly one of tokens and image")
        return image

    @model_validator(mode="after")
    def _layers_fit(self) -> Self:
        walk = _Walk()
        walk.through(self.layers, self.input, ("layers",))
        if not walk.problems and not any(part.numbers.flops or part.measured_s for part in self.parts):
            walk.problems.append(Problem(("layers",), "expected a layer with FLOPs or durations"))
        if walk.problems:
            raise validation_error(self, walk.problems)
        return self

    @property
    def input(self) -> Shape:
        """The shape of one sample."""
        if self.image is not None:
            return Shape.of_image(self.image.size, self.image.channels)
        return Shape(self.tokens or 1, 1)

    @cached_property
    def blocks(self) -> tuple[ModelBlock, ...]:
        """The blocks in order. Raises ShapeError for layers that do not fit, which a valid model does not have."""
        blocks: list[ModelBlock] = []
        shape = self.input
        for layer in self.layers:
            for repetition in range(layer.repeat if isinstance(layer, Block) else 1):
                parts, shape = _parts(layer, shape, _name(layer))
                parts = tuple(replace(part, element_bytes=self.element_bytes) for part in parts)
                is_repeated = isinstance(layer, Block) and layer.repeat > 1
                name = f"{_name(layer)} {repetition}" if is_repeated else _name(layer)
                blocks.append(ModelBlock(name, parts, shape))
        return tuple(blocks)

    @property
    def parts(self) -> Iterator[Part]:
        """All layers in order."""
        return (part for block in self.blocks for part in block.parts)

    @cached_property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(part.numbers.parameters for part in self.parts)

    @cached_property
    def active_parameters(self) -> int:
        """Number of parameters that a token meets; less than all with experts."""
        return sum(part.numbers.active_parameters for part in self.parts)

    @cached_property
    def forward_flops(self) -> int:
        """FLOPs of one sample's forward pass; the backward pass has twice as many."""
        return sum(part.numbers.flops for part in self.parts)

    @cached_property
    def score_flops(self) -> int:
        """Those of ``forward_flops`` that are attention's own, apart from its projections."""
        return sum(part.numbers.score_flops for part in self.parts)

    @property
    def needs_device(self) -> bool:
        """Whether a layer has FLOPs and no measured durations."""
        return any(part.numbers.flops and part.measured_s is None for part in self.parts)


def _name(layer: Layer) -> str:
    return layer.name or str(getattr(layer, "type", "layer"))


class _Walk:
    """Goes through layers as ``blocks`` does, each repetition once, and finds all that do not fit."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._num_layers = 0

    def through(
        self, layers: Sequence[AnyLayer], shape: Shape | None, here: Location, times: int = 1, measured: bool = False
    ) -> Shape | None:
        """Return what the layers give; None behind one that does not fit."""
        for position, layer in enumerate(layers):
            location = (*here, position)
            if measured and layer.forward_s is not None:
                problem = "expected durations of this layer or of the layers around it, not of both"
                self.problems.append(Problem((*location, "forward_s"), problem))
            if shape is not None:
                shape = self._behind(layer, shape, location, times, measured or layer.forward_s is not None)
        return shape

    def _behind(self, layer: AnyLayer, shape: Shape, here: Location, times: int, measured: bool) -> Shape | None:
        if isinstance(layer, Block):
            behind = self.through(layer.layers, shape, (*here, "layers"), times * layer.repeat, measured)
            if behind is not None and behind != shape and layer.repeat > 1:
                # A repetition must be able to follow another one.
                problem = f"expected a block that gives what it gets, {shape}, but it gives {behind}"
                self.problems.append(Problem((*here, "repeat"), problem))
                return None
            return behind
        if isinstance(layer, Residual):
            behind = self.through(layer.layers, shape, (*here, "layers"), times, measured)
            beside = self.through(layer.shortcut, shape, (*here, "shortcut"), times, measured)
            if behind is not None and beside is not None and behind != beside:
                problem = f"expected layers that give what the shortcut gives, {beside}, but they give {behind}"
                self.problems.append(Problem((*here, "layers"), problem))
                return None
            return behind
        self._num_layers += times
        if self._num_layers > MOST_LAYERS:
            if self._num_layers - times <= MOST_LAYERS:
                self.problems.append(Problem(here, f"expected at most {MOST_LAYERS:,} layers with their repetitions"))
            return None
        try:
            return layer.numbers(shape).output
        except ShapeError as error:
            self.problems.append(error.problem(here))
            # So that one mistake does not hide the next: whatever is wrong with these, they give what they get.
            return shape if isinstance(layer, Attention | MixtureOfExperts) and shape.size is None else None


def _parts(layer: AnyLayer, shape: Shape, name: str) -> tuple[tuple[Part, ...], Shape]:
    """Return the layers of one repetition, and what they give."""
    measured_s = None
    if layer.forward_s is not None and layer.backward_s is not None:
        measured_s = (layer.forward_s, layer.backward_s)
    if not isinstance(layer, Block | Residual):
        numbers = layer.numbers(shape)
        return (Part(name, numbers, measured_s),), numbers.output
    inner: list[Part] = []
    output = shape
    for each in layer.layers:
        for _ in range(each.repeat if isinstance(each, Block) else 1):
            parts, output = _parts(each, output, f"{name} {_name(each)}")
            inner += parts
    beside = shape
    for each in layer.shortcut if isinstance(layer, Residual) else ():
        for _ in range(each.repeat if isinstance(each, Block) else 1):
            parts, beside = _parts(each, beside, f"{name} {_name(each)}")
            inner += parts
    return tuple(inner if measured_s is None else _shared_out(inner, measured_s)), output


def _shared_out(parts: Sequence[Part], measured_s: tuple[float, float]) -> Iterator[Part]:
    """Share durations out over layers by their FLOPs, or evenly where none has any."""
    total = sum(part.numbers.flops for part in parts)
    for part in parts:
        share = part.numbers.flops / total if total else 1 / len(parts)
        yield Part(part.name, part.numbers, (measured_s[0] * share, measured_s[1] * share))
