"""Layers of models that see images, by shape: convolutions, pools, and patches as tokens. Images are square."""

from typing import Annotated, Literal

from pydantic import Field

from workloads.described.layers import Dimension, Flag, Layer, LayerNumbers
from workloads.described.shapes import Shape, ShapeError, as_image, divided

Padding = Annotated[int, Field(strict=True, ge=0, le=2**31)]


class Convolution(Layer):
    """A square kernel moved over the image; by default padded so that stride 1 keeps the size."""

    type: Literal["convolution"] = "convolution"
    outputs: Dimension
    kernel: Dimension
    stride: Dimension = 1
    padding: Padding | None = None
    groups: Dimension = 1
    bias: Flag = False

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer. Raises ShapeError where groups do not divide, or the image is too small."""
        size = _moved(as_image(shape, "convolution"), self.kernel, self.stride, self.padding)
        inputs = divided(
            shape.width, self.groups, "groups", f"expected groups that divide the {shape.width} channels before"
        )
        divided(self.outputs, self.groups, "groups", f"expected groups that divide the {self.outputs} outputs")
        weights = inputs * self.outputs * self.kernel**2
        parameters = weights + self.outputs * self.bias
        output = Shape.of_image(size, self.outputs)
        return LayerNumbers(parameters, 2 * output.tokens * weights, output, parameters)


class Pool(Layer):
    """The largest value, or the mean, under a square kernel; it has no parameters."""

    type: Literal["pool"] = "pool"
    kernel: Dimension
    stride: Dimension
    padding: Padding = 0

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer. Raises ShapeError where the image is too small."""
        size = _moved(as_image(shape, "pool"), self.kernel, self.stride, self.padding)
        return LayerNumbers(0, 0, Shape.of_image(size, shape.width), 0)


class SqueezeExcitation(Layer):
    """A weight for each channel, from their means through two projections with ``squeeze`` numbers between them."""

    type: Literal["squeeze_excitation"] = "squeeze_excitation"
    squeeze: Dimension

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer."""
        as_image(shape, "squeeze_excitation")
        weights = 2 * shape.width * self.squeeze
        parameters = weights + self.squeeze + shape.width
        return LayerNumbers(parameters, 2 * weights, shape, parameters)


class GlobalPool(Layer):
    """The mean over the whole image: one token, as wide as the image has channels."""

    type: Literal["global_pool"] = "global_pool"

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer."""
        as_image(shape, "global_pool")
        return LayerNumbers(0, 0, Shape(1, shape.width), 0)


class Patches(Layer):
    """Square patches of an image as tokens, with a learned place each; a ``class_token`` is one more."""

    type: Literal["patches"] = "patches"
    size: Dimension
    width: Dimension
    class_token: Flag = False
    positions: Flag = True

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer. Raises ShapeError where patches do not divide the image."""
        image = as_image(shape, "patches")
        across = divided(image, self.size, "size", f"expected patches that divide the image of {image} x {image}")
        tokens = across**2 + self.class_token
        weights = shape.width * self.size**2 * self.width
        parameters = weights + self.width * (1 + self.class_token + tokens * self.positions)
        return LayerNumbers(parameters, 2 * across**2 * weights, Shape(tokens, self.width), parameters)


def _moved(size: int, kernel: int, stride: int, padding: int | None) -> int:
    room = size + 2 * (kernel // 2 if padding is None else padding) - kernel
    if room < 0:
        raise ShapeError("kernel", f"expected a kernel that fits on the image of {size} x {size}", kernel)
    return room // stride + 1
