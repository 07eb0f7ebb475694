"""Types of digests: how a P4Info builds structs and tuples of the values that a program lists."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from finsy.proto import p4d, p4i, p4t

from emulator.p4runtime.bytestrings import encode_value
from emulator.p4runtime.device_config import CompiledDigest, DeviceConfig
from emulator.p4runtime.differences import disagreement
from emulator.p4runtime.errors import unimplemented

_DEEPEST = 16


@dataclass(frozen=True, slots=True)
class Shape:
    """A value, or a struct or tuple of ``parts``."""

    kind: str = "value"
    parts: tuple["Shape", ...] = ()

    @property
    def num_values(self) -> int:
        """Number of values in it."""
        return sum(part.num_values for part in self.parts) if self.kind != "value" else 1


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest; the program has its values in the list ``number``, with these widths."""

    id: int
    name: str
    shape: Shape
    number: int = 0
    widths_bits: tuple[int, ...] = ()

    def data(self, octets: bytes) -> p4d.P4Data:
        """Return values as the P4Info builds them; ``octets`` has as many whole bytes of each as it needs."""
        return _built(self.shape, self._values(octets))

    def _values(self, octets: bytes) -> Iterator[int]:
        for width_bits in self.widths_bits:
            num_bytes = -(-width_bits // 8)
            yield int.from_bytes(octets[:num_bytes], "big")
            octets = octets[num_bytes:]


def read_digest(message: p4i.Digest, types: p4t.P4TypeInfo) -> Digest:
    """Return a digest of a P4Info. Raises RequestError, UNIMPLEMENTED, for a type with headers or without end."""
    name = message.preamble.name
    return Digest(message.preamble.id, name, _shape(message.type_spec, types, name))


def agreed_digests(digests: Mapping[int, Digest], config: DeviceConfig) -> dict[int, Digest]:
    """Return the digests with the lists of the program; p4c may name a tuple otherwise there.

    Raises RequestError, INVALID_ARGUMENT, for a digest that has no list, or one of another number of values.
    """
    lists = {compiled.name: compiled for compiled in config.learn_lists}
    others = [lists[name] for name in lists if name not in {digest.name for digest in digests.values()}]
    return {number: _agreed(digest, lists, others, config) for number, digest in digests.items()}


def _agreed(
    digest: Digest, lists: Mapping[str, CompiledDigest], others: list[CompiledDigest], config: DeviceConfig
) -> Digest:
    where = f"digest {digest.name}"
    if digest.name not in lists and not others:
        raise disagreement(where, "the JSON has none of this name")
    found = lists[digest.name] if digest.name in lists else others.pop(0)
    widths = [config.element_width_bits(element.value) for element in found.elements]
    known = tuple(width for width in widths if width is not None)
    if len(known) != digest.shape.num_values or len(known) != len(widths):
        raise disagreement(where, f"values: {digest.shape.num_values}, but {len(widths)} in the JSON")
    return replace(digest, number=found.id, widths_bits=known)


def _shape(spec: p4t.P4DataTypeSpec, types: p4t.P4TypeInfo, name: str, depth: int = 0) -> Shape:
    if depth > _DEEPEST:
        raise unimplemented(f"digest {name}: types within types, {_DEEPEST} deep, are not supported")
    match spec.WhichOneof("type_spec"):
        case "struct":
            members = types.structs[spec.struct.name].members if spec.struct.name in types.structs else ()
            return Shape("struct", tuple(_shape(member.type_spec, types, name, depth + 1) for member in members))
        case "tuple":
            return Shape("tuple", tuple(_shape(member, types, name, depth + 1) for member in spec.tuple.members))
        case "bitstring" | "bool" | "error" | "enum" | "serializable_enum" | "new_type":
            return Shape()
        case other:
            raise unimplemented(f"digest {name}: a value of type {other} is not supported")


def _built(shape: Shape, values: Iterator[int]) -> p4d.P4Data:
    match shape.kind:
        case "struct":
            return p4d.P4Data(struct=p4d.P4StructLike(members=[_built(part, values) for part in shape.parts]))
        case "tuple":
            return p4d.P4Data(tuple=p4d.P4StructLike(members=[_built(part, values) for part in shape.parts]))
    return p4d.P4Data(bitstring=encode_value(next(values)))
