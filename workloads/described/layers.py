"""Layers of a transformer, by shape: parameters, FLOPs of the forward pass, and what comes out.

A multiplication with its addition counts as two FLOPs. Norms, activation functions and additions count as none, as in
the counts that reports of models publish. What a layer gets is what the layer before it gives, so that widths need not
be repeated.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from workloads.described.shapes import Shape, ShapeError, as_tokens, divided
from workloads.field_types import Name, PositiveSeconds, ScenarioModel

Dimension = Annotated[int, Field(strict=True, gt=0, le=2**31)]
Flag = Annotated[bool, Field(strict=True)]

NORM_PASSES = 2
"""How often a norm's numbers pass memory: they are read, and written."""
SUM_PASSES = 3
"""Those of a layer's result, added to what it got: both are read, the sum is written."""
SCORE_PASSES = 6
"""Those of scores that are stored: a product writes them; softmax and dropout read and write them; a product reads."""


@dataclass(frozen=True, slots=True)
class MovedElements:
    """Numbers that a forward pass reads from a GPU's memory and writes to it, apart from its matrix products.

    ``scores`` are attention's, where they are stored. ``divided`` are those of activation functions, which tensor
    parallelism divides; ``whole`` those of norms and sums, which every rank has unless the sequence is divided, too.
    """

    scores: int = 0
    divided: int = 0
    whole: int = 0


@dataclass(frozen=True, slots=True)
class LayerNumbers:
    """What one layer has, and does for one sample.

    ``flops`` are those of the forward pass, of which ``score_flops`` are attention's own, apart from its projections;
    ``active_parameters`` are those that a token meets. The rest is what parallelism asks for: ``expert_parameters`` of
    the ``num_experts`` among whom tokens are routed, and ``routed_elements`` that go to them; ``key_value_elements``
    that other parts of the sequence attend to; ``reduced_elements`` that tensor parallelism sums up after the layer,
    and ``divisible``, what its ranks divide among each other, each by its key. The backward pass needs what the layer
    gets, and ``inner_elements`` that it makes from that; those of stored scores are ``score_elements``. ``moved`` is
    what memory reads and writes.
    """

    parameters: int
    flops: int
    output: Shape
    active_parameters: int
    score_flops: int = 0
    expert_parameters: int = 0
    num_experts: int = 0
    routed_elements: int = 0
    key_value_elements: int = 0
    reduced_elements: int = 0
    inner_elements: int = 0
    score_elements: int = 0
    divisible: tuple[tuple[str, int], ...] = ()
    moved: MovedElements = MovedElements()


class Layer(ScenarioModel):
    """Base of all layers. ``forward_s`` and ``backward_s`` are measured: for one sample, on one GPU."""

    name: Name | None = None
    forward_s: PositiveSeconds | None = None
    backward_s: PositiveSeconds | None = Field(default=None, validate_default=True)

    @field_validator("backward_s")
    @classmethod
    def _both_are_measured(cls, backward_s: float | None, info: ValidationInfo) -> float | None:
        if "forward_s" in info.data and (backward_s is None) != (info.data["forward_s"] is None):
            raise ValueError("expected both forward_s and backward_s, or neither")
        return backward_s


class Embedding(Layer):
    """A vector for every word of a vocabulary; with ``positions`` one for every place, with ``segments`` for those."""

    type: Literal["embedding"] = "embedding"
    vocabulary: Dimension
    width: Dimension
    positions: Dimension | None = None
    segments: Annotated[int, Field(strict=True, ge=0, le=2**31)] = 0

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer. Raises ShapeError unless it gets words."""
        if shape.size is not None or shape.width != 1:
            raise ShapeError(None, f"an embedding must be the first layer, and needs tokens, but gets {shape}")
        if self.positions is not None and self.positions < shape.tokens:
            raise ShapeError("positions", f"expected at least the model's {shape.tokens} tokens", self.positions)
        parameters = (self.vocabulary + (self.positions or 0) + self.segments) * self.width
        return LayerNumbers(parameters, 0, Shape(shape.tokens, self.width), parameters)


class Norm(Layer):
    """A scale for every number of the width, and with ``bias`` a shift; layer, RMS or batch normalisation."""

    type: Literal["norm"] = "norm"
    bias: Flag = False

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer."""
        parameters = shape.width * (1 + self.bias)
        return LayerNumbers(parameters, 0, shape, parameters, moved=MovedElements(whole=NORM_PASSES * shape.elements))


class Attention(Layer):
    """Self-attention with its four projections; fewer ``key_value_heads`` than heads are grouped-query attention.

    ``head_width`` is by default the width, divided by the heads. With ``causal`` a token attends to half of the others
    on average, and with a ``window`` to so many before it at most. With ``memory_tokens`` it attends to all of so many
    tokens of another row, of the same width: cross-attention. ``qkv_bias`` is one of all projections but the last.
    ``stored_scores`` are written to memory and read again, as before FlashAttention.
    """

    type: Literal["attention"] = "attention"
    heads: Dimension
    key_value_heads: Dimension | None = None
    head_width: Dimension | None = None
    bias: Flag = False
    qkv_bias: Flag = False
    causal: Flag = True
    window: Dimension | None = None
    memory_tokens: Dimension | None = None
    stored_scores: Flag = False

    @field_validator("window", "memory_tokens")
    @classmethod
    def _fits_the_mask(cls, tokens: int | None, info: ValidationInfo) -> int | None:
        if tokens is not None and info.data.get("causal") != (info.field_name == "window"):
            raise ValueError("expected only with causal: " + ("true" if info.field_name == "window" else "false"))
        return tokens

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer. Raises ShapeError where heads do not divide."""
        as_tokens(shape, "attention")
        head_width = self.head_width or divided(
            shape.width, self.heads, "heads", f"expected heads that divide the width {shape.width}, or head_width"
        )
        key_value_heads = self.key_value_heads or self.heads
        expected = f"expected a number that divides the {self.heads} heads"
        divided(self.heads, key_value_heads, "key_value_heads", expected)
        inner, narrow = self.heads * head_width, key_value_heads * head_width
        weights = shape.width * (2 * inner + 2 * narrow)
        biases = (inner + 2 * narrow) * (self.bias or self.qkv_bias) + shape.width * self.bias
        parameters = weights + biases
        memory = self.memory_tokens or shape.tokens
        pairs = _attended_pairs(shape.tokens, memory, self.causal, self.window)
        scores = round(4 * pairs * self.heads * head_width)
        own = shape.width * 2 * inner
        return LayerNumbers(
            parameters,
            2 * (shape.tokens * own + memory * (weights - own)) + scores,
            shape,
            parameters,
            scores,
            key_value_elements=2 * memory * narrow,
            reduced_elements=shape.elements,
            inner_elements=2 * (shape.tokens * inner + memory * narrow),
            score_elements=self.heads * shape.tokens * memory * self.stored_scores,
            divisible=(("heads", self.heads),),
            moved=MovedElements(
                scores=SCORE_PASSES * self.heads * shape.tokens * memory * self.stored_scores,
                whole=SUM_PASSES * shape.elements,
            ),
        )


class LatentAttention(Layer):
    """Multi-head latent attention (DeepSeek-V2): queries, and keys with values, come from narrow vectors of some rank.

    Keys have ``head_width`` numbers of their own and ``rotary_width`` ones that all heads share; both ranks are
    normalised.
    """

    type: Literal["latent_attention"] = "latent_attention"
    heads: Dimension
    query_rank: Dimension
    key_value_rank: Dimension
    head_width: Dimension
    rotary_width: Dimension
    value_width: Dimension
    causal: Flag = True

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer."""
        as_tokens(shape, "latent_attention")
        key_width = self.head_width + self.rotary_width
        weights = (
            self.query_rank * (shape.width + self.heads * key_width)
            + shape.width * (self.key_value_rank + self.rotary_width)
            + self.key_value_rank * self.heads * (self.head_width + self.value_width)
            + self.heads * self.value_width * shape.width
        )
        parameters = weights + self.query_rank + self.key_value_rank
        ranks = self.query_rank + self.key_value_rank + self.rotary_width
        pairs = _attended_pairs(shape.tokens, shape.tokens, self.causal)
        scores = round(2 * pairs * self.heads * (key_width + self.value_width))
        return LayerNumbers(
            parameters,
            2 * shape.tokens * weights + scores,
            shape,
            parameters,
            scores,
            key_value_elements=shape.tokens * (self.key_value_rank + self.rotary_width),
            reduced_elements=shape.elements,
            inner_elements=shape.tokens * (ranks + 2 * self.heads * (key_width + self.value_width)),
            divisible=(("heads", self.heads),),
            moved=MovedElements(whole=SUM_PASSES * shape.elements),
        )


class Mlp(Layer):
    """Two projections with an activation function between them; ``gated`` (SwiGLU) has a third."""

    type: Literal["mlp"] = "mlp"
    hidden: Dimension
    gated: Flag = False
    bias: Flag = False

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer."""
        as_tokens(shape, "mlp")
        weights = (2 + self.gated) * shape.width * self.hidden
        parameters = weights + ((1 + self.gated) * self.hidden + shape.width) * self.bias
        return LayerNumbers(
            parameters,
            2 * shape.tokens * weights,
            shape,
            parameters,
            reduced_elements=shape.elements,
            inner_elements=shape.tokens * (2 + self.gated) * self.hidden,
            divisible=(("hidden", self.hidden),),
            moved=MovedElements(
                divided=(2 + self.gated) * shape.tokens * self.hidden, whole=SUM_PASSES * shape.elements
            ),
        )


class MixtureOfExperts(Layer):
    """A router that sends every token to ``active`` of the ``experts``; every token meets the ``shared`` ones, too."""

    type: Literal["moe"] = "moe"
    experts: Dimension
    active: Dimension
    hidden: Dimension
    shared: Annotated[int, Field(strict=True, ge=0, le=2**31)] = 0
    gated: Flag = True

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer. Raises ShapeError where more experts are active than there are."""
        as_tokens(shape, "moe")
        if self.active > self.experts:
            raise ShapeError("active", f"expected at most the {self.experts} experts", self.active)
        expert = (2 + self.gated) * shape.width * self.hidden
        router = shape.width * self.experts
        active = router + (self.active + self.shared) * expert
        return LayerNumbers(
            router + (self.experts + self.shared) * expert,
            2 * shape.tokens * active,
            shape,
            active,
            expert_parameters=self.experts * expert,
            num_experts=self.experts,
            routed_elements=self.active * shape.elements,
            reduced_elements=shape.elements,
            inner_elements=self.active * shape.elements
            + shape.tokens * (self.active + self.shared) * (2 + self.gated) * self.hidden,
            divisible=(("hidden", self.hidden),),
            moved=MovedElements(
                divided=(2 + self.gated) * (self.active + self.shared) * shape.tokens * self.hidden,
                whole=SUM_PASSES * shape.elements,
            ),
        )


class Linear(Layer):
    """One projection, of the first ``tokens`` alone if given; a ``tied`` one has the parameters of another layer."""

    type: Literal["linear"] = "linear"
    outputs: Dimension
    bias: Flag = False
    tied: Flag = False
    tokens: Dimension | None = None

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer. Raises ShapeError where there are fewer tokens than it wants."""
        as_tokens(shape, "linear")
        if self.tokens is not None and self.tokens > shape.tokens:
            raise ShapeError("tokens", f"expected at most the {shape.tokens} tokens", self.tokens)
        tokens = self.tokens or shape.tokens
        weights = shape.width * self.outputs
        own = (0 if self.tied else weights) + self.outputs * self.bias
        flops = 2 * tokens * weights
        output = Shape(tokens, self.outputs)
        divisible = (("outputs", self.outputs),)
        return LayerNumbers(own, flops, output, own, inner_elements=output.elements, divisible=divisible)


class Given(Layer):
    """A layer by its numbers: ``parameters``, ``flops`` of a sample's forward pass, and ``activations``.

    ``activations`` are the numbers of one sample that the layer gives; without them it gives what it gets.
    """

    type: Literal["given"] = "given"
    parameters: Annotated[int, Field(strict=True, ge=0, le=10**15)]
    flops: Annotated[float, Field(strict=True, ge=0, le=1e24, allow_inf_nan=False)]
    activations: Dimension | None = None

    def numbers(self, shape: Shape) -> LayerNumbers:
        """Return the numbers of the layer."""
        output = shape
        if self.activations is not None:
            per_token, rest = divmod(self.activations, shape.tokens)
            output = Shape(1, self.activations) if rest else Shape(shape.tokens, per_token)
        return LayerNumbers(self.parameters, round(self.flops), output, self.parameters)


def _attended_pairs(tokens: int, memory_tokens: int, causal: bool, window: int | None = None) -> float:
    """Return how many pairs of tokens attention has; a causal one half of all, without those outside its window."""
    if not causal:
        return tokens * memory_tokens
    reach = min(window or tokens, tokens)
    return tokens * reach - reach**2 / 2
