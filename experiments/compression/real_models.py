"""The models of NetSenseML's Tables 1 and 2 by the shapes of their parameters: ResNet18 and VGG16.

Sizes are those of ImageNet's models on images of 224 x 224: He et al. 2016, Table 1 (with the 1 x 1 convolutions of
option B) and Simonyan & Zisserman 2015, Table 1, column D. A step takes a third for the forward pass and two thirds for
the backward pass, and each layer its share of the multiply-adds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

MIB = 1 << 20
FIRST_BUCKET_BYTES = MIB
BUCKET_MIB = 25.0
"""DDP's limits by default: a bucket is closed by the parameter with which it reaches its limit."""
_FP32_BYTES = 4

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution or a linear layer, with the normalisation that follows it.

    Attributes:
        name: As in the paper of the model.
        weight: Outputs, inputs and, of a convolution, height and width.
        side: Height and width of what it computes; 1 of a linear layer.
        has_bias: Whether it has one bias per output.
        is_normalised: Whether a batch normalisation, with two parameters per output, follows.
    """

    name: str
    weight: Shape
    side: int = 1
    has_bias: bool = False
    is_normalised: bool = False

    @property
    def multiply_adds(self) -> int:
        """Of one image, in the forward pass; normalisation and activation count nothing."""
        return prod(self.weight) * self.side**2

    @property
    def parameters(self) -> tuple[Shape, ...]:
        """Shapes in the order in which PyTorch registers them."""
        outputs = (self.weight[0],)
        return (self.weight, *([outputs] if self.has_bias else []), *([outputs, outputs] if self.is_normalised else []))


@dataclass(frozen=True, slots=True)
class ModelBucket:
    """What DDP reduces at once.

    Attributes:
        shapes: Of its parameters, in the order in which their gradients are there.
        ready_share: The share of the backward pass after which they all are.
    """

    shapes: tuple[Shape, ...]
    ready_share: float

    @property
    def elements(self) -> int:
        """Its gradients."""
        return sum(map(prod, self.shapes))


@dataclass(frozen=True)
class RealModel:
    """A model by its layers, in the order of the forward pass; ``bucket_mib`` limits all buckets but the first."""

    name: str
    layers: tuple[Layer, ...]
    bucket_mib: float = BUCKET_MIB

    @property
    def elements(self) -> int:
        """All its parameters."""
        return sum(prod(shape) for layer in self.layers for shape in layer.parameters)

    @cached_property
    def buckets(self) -> tuple[ModelBucket, ...]:
        """The buckets that DDP makes, in the order in which they are reduced."""
        total = sum(layer.multiply_adds for layer in self.layers)
        buckets: list[ModelBucket] = []
        shapes: list[Shape] = []
        size_bytes, limit_bytes = 0, float(FIRST_BUCKET_BYTES)
        done = 0
        for layer in reversed(self.layers):
            done += layer.multiply_adds
            for shape in reversed(layer.parameters):
                shapes.append(shape)
                size_bytes += prod(shape) * _FP32_BYTES
                if size_bytes >= limit_bytes:
                    buckets.append(ModelBucket(tuple(shapes), done / total))
                    shapes, size_bytes, limit_bytes = [], 0, self.bucket_mib * MIB
        if shapes:
            buckets.append(ModelBucket(tuple(shapes), 1.0))
        return tuple(buckets)


def _residual_layers() -> Iterator[Layer]:
    yield Layer("conv1", (64, 3, 7, 7), 112, is_normalised=True)
    inputs = 64
    for stage, (outputs, side) in enumerate(((64, 56), (128, 28), (256, 14), (512, 7)), start=2):
        for block in (1, 2):
            name = f"conv{stage}_{block}"
            yield Layer(f"{name}a", (outputs, inputs, 3, 3), side, is_normalised=True)
            yield Layer(f"{name}b", (outputs, outputs, 3, 3), side, is_normalised=True)
            if inputs != outputs:
                yield Layer(f"{name}s", (outputs, inputs, 1, 1), side, is_normalised=True)
            inputs = outputs
    yield Layer("fc", (1000, 512), has_bias=True)


RESNET18 = RealModel("ResNet18", tuple(_residual_layers()))
VGG16 = RealModel(
    "VGG16",
    (
        Layer("conv1_1", (64, 3, 3, 3), 224, has_bias=True),
        Layer("conv1_2", (64, 64, 3, 3), 224, has_bias=True),
        Layer("conv2_1", (128, 64, 3, 3), 112, has_bias=True),
        Layer("conv2_2", (128, 128, 3, 3), 112, has_bias=True),
        Layer("conv3_1", (256, 128, 3, 3), 56, has_bias=True),
        Layer("conv3_2", (256, 256, 3, 3), 56, has_bias=True),
        Layer("conv3_3", (256, 256, 3, 3), 56, has_bias=True),
        Layer("conv4_1", (512, 256, 3, 3), 28, has_bias=True),
        Layer("conv4_2", (512, 512, 3, 3), 28, has_bias=True),
        Layer("conv4_3", (512, 512, 3, 3), 28, has_bias=True),
        Layer("conv5_1", (512, 512, 3, 3), 14, has_bias=True),
        Layer("conv5_2", (512, 512, 3, 3), 14, has_bias=True),
        Layer("conv5_3", (512, 512, 3, 3), 14, has_bias=True),
        Layer("fc6", (4096, 512 * 7 * 7), has_bias=True),
        Layer("fc7", (4096, 4096), has_bias=True),
        Layer("fc8", (1000, 4096), has_bias=True),
    ),
)
MODELS = {model.name: model for model in (RESNET18, VGG16)}
