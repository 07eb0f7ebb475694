"""Shapes of arrays, and how they are cut into shards: no data, no devices.

A sharded array is cut into blocks of equal size along one axis, or every shard holds the whole of it. So the index
range of a shard follows from its number, and nothing here grows with the number of shards.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ITEM_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}
"""The dtypes that arrays have: those that NumPy and PyTorch share, by their common name."""

_MOST_AXES = 64
_MOST_BYTES = 2**63 - 1
"""Of an array of NumPy."""

UNBOUNDED: Final = 2**63 - 1
"""The number of rows of a ragged array of which no bound is known. It is no power of two, as bounds are."""


@dataclass(frozen=True, slots=True, init=False)
class ArraySpec:
    """Shape and dtype of an array.

    How many rows a **ragged** array has depends on data; ``shape`` says at most how many. None as the first size says
    that no bound is known: the array is ragged then, and **unbounded**.

    Raises ValueError for a negative size, for None elsewhere, for a ragged array without axes, and for more axes or
    bytes than arrays have; TypeError for a dtype that NumPy and PyTorch do not share.
    """

    shape: tuple[int, ...]
    dtype: str
    is_ragged: bool = False

    def __init__(self, shape: Sequence[int | None], dtype: str, is_ragged: bool = False) -> None:
        sizes = tuple(shape)
        if None in sizes[1:]:
            raise ValueError(f"shape: only the first size may be None, got {sizes}")
        is_bounded = not sizes or sizes[0] is not None
        object.__setattr__(self, "shape", tuple([UNBOUNDED if size is None else int(size) for size in sizes]))
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "is_ragged", is_ragged or not is_bounded)
        if self.dtype not in ITEM_BYTES:
            raise TypeError(f"dtype: expected one of {', '.join(ITEM_BYTES)}, got {self.dtype!r}")
        if any(size < 0 for size in self.shape):
            raise ValueError(f"shape: sizes must not be negative, got {self.shape}")
        if self.is_ragged and not self.shape:
            raise ValueError("shape: a ragged array must have an axis")
        if len(self.shape) > _MOST_AXES or self._least_bytes > _MOST_BYTES:
            raise ValueError(f"shape: no array has {len(self.shape)} axes and {self._least_bytes} bytes")

    @property
    def _least_bytes(self) -> int:
        """Bytes of its elements with one where it has none, as NumPy counts them."""
        sizes = self.shape if self.is_bounded else self.shape[1:]
        return math.prod(max(1, size) for size in sizes) * ITEM_BYTES[self.dtype]

    @property
    def is_bounded(self) -> bool:
        """Whether it is known how many rows it has at most."""
        return not self.is_ragged or self.shape[0] != UNBOUNDED

    def is_met_by(self, shape: Sequence[int]) -> bool:
        """Return whether an array of a shape is so."""
        if self.is_ragged:
            return len(shape) == len(self.shape) and shape[0] <= self.shape[0] and tuple(shape[1:]) == self.shape[1:]
        return tuple(shape) == self.shape

    @property
    def size_bytes(self) -> int:
        """Bytes of its elements, at most; 0 where no bound is known."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype] if self.is_bounded else 0

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return math.prod(self.shape[1:]) * ITEM_BYTES[self.dtype]

    def __str__(self) -> str:
        if not self.is_bounded:
            return f"{self.dtype}[{','.join(('?', *map(str, self.shape[1:])))}]"
        return f"{self.dtype}[{'<=' if self.is_ragged else ''}{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Sharding:
    """How an array is cut: into ``shards`` equal blocks along ``axis``, or ``shards`` copies where it is None."""

    axis: int | None
    shards: int

    def __post_init__(self) -> None:
        if self.shards < 1:
            raise ValueError(f"shards: expected at least one, got {self.shards}")
        if self.axis is not None and self.axis < 0:
            raise ValueError(f"axis: expected an axis from 0, or None, got {self.axis}")

    def check(self, spec: ArraySpec) -> None:
        """Raise ValueError unless an array of ``spec`` can be cut so."""
        if self.axis is None:
            return
        if self.axis >= len(spec.shape):
            raise ValueError(f"{spec} has no axis {self.axis}")
        if spec.is_ragged and self.axis:
            raise ValueError(f"{spec} is ragged, and can be cut along axis 0 alone")
        if spec.is_bounded and spec.shape[self.axis] % self.shards:
            raise ValueError(f"axis {self.axis} of {spec} cannot be cut into {self.shards} equal blocks")

    def shard_spec(self, spec: ArraySpec) -> ArraySpec:
        """Return what one shard of an array of ``spec`` is. Raises ValueError as ``check``."""
        self.check(spec)
        if self.axis is None or not spec.is_bounded:
            return spec
        shape = list(spec.shape)
        shape[self.axis] //= self.shards
        return ArraySpec(tuple(shape), spec.dtype, spec.is_ragged)

    def whole_spec(self, shard: ArraySpec) -> ArraySpec:
        """Return the array whose shards are ``shard``. Raises ValueError if they have no such axis."""
        if self.axis is None:
            return shard
        if self.axis >= len(shard.shape):
            raise ValueError(f"{shard} has no axis {self.axis} along which shards could be joined")
        shape = list(shard.shape)
        if self.axis or shard.is_bounded:
            shape[self.axis] *= self.shards
        return ArraySpec(tuple(shape), shard.dtype, shard.is_ragged)

    def bounded(self, spec: ArraySpec, rows: int) -> ArraySpec:
        """Return an array that was unbounded, now that its largest shard is known to have so many rows.

        Its bound is the next power of two for each shard: so programs that take such arrays are few.
        """
        bound = 1 << (max(rows, 1) - 1).bit_length()
        return self.whole_spec(ArraySpec((bound, *spec.shape[1:]), spec.dtype, is_ragged=True))

    def indices(self, spec: ArraySpec, shard: int) -> range:
        """Return the indices along ``axis`` that a shard holds; of copies, those along axis 0."""
        if self.axis is None:
            return range(spec.shape[0]) if spec.shape else range(1)
        size = spec.shape[self.axis] // self.shards
        return range(shard * size, (shard + 1) * size)

    def __str__(self) -> str:
        return f"{self.shards} copies" if self.axis is None else f"{self.shards} on axis {self.axis}"
