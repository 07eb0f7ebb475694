"""Objects of externs, as a program declares them."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.p4src.tna import ir, nodes
from tests.p4src.tna.externs import CRC16, CRC32, Checksum, Counter, Crc, DirectCounter, Hash, Meter, Register
from tests.p4src.tna.layouts import Layouts, number

Polynomials = dict[str, Crc]
_ALGORITHMS: Mapping[str, Crc | None] = {"CRC32": CRC32, "CRC16": CRC16, "IDENTITY": None}


def extern_object(instance: ir.Instance, label: str, layouts: Layouts, polynomials: Polynomials) -> Any:
    """The object of a declaration; raises ``NotImplementedError`` for externs that are not known."""
    kind, _, rest = instance.type.partition("<")
    arguments = [argument.expression for argument in instance.arguments]
    match kind:
        case "Counter":
            return Counter(constant(arguments[0]))
        case "DirectCounter":
            return DirectCounter()
        case "Meter":
            return Meter()
        case "Checksum":
            return Checksum(label)
        case "Register":
            return Register(_cells(rest.rpartition(",")[0], arguments, layouts))
        case "Hash":
            return Hash(_crc(arguments, polynomials), number(rest.removesuffix(">")))
        case "Mirror":
            return None
    raise NotImplementedError(f"the extern {kind}")


def _cells(kind: str, arguments: list[nodes.Node], layouts: Layouts) -> list[Any]:
    is_struct = layouts.is_struct(kind)
    initial: Any = (0,) * len(list(layouts.leaves(kind, ""))) if is_struct else 0
    if len(arguments) > 1:
        given = tuple(constant(part) for part in flat(arguments[1]))
        initial = given if is_struct else given[0]
    return [initial] * constant(arguments[0])


def _crc(arguments: list[nodes.Node], polynomials: Polynomials) -> Crc | None:
    match arguments:
        case [_, nodes.PathExpression(path=name)]:
            return polynomials[name]
        case [nodes.Member(member=algorithm)] if algorithm in _ALGORITHMS:
            return _ALGORITHMS[algorithm]
    raise NotImplementedError(f"a hash of {arguments}")


def polynomial(instance: ir.Instance) -> Crc:
    """A polynomial of the program's own; what it is given are coefficients, directions, beginning and end."""
    coefficients, is_reversed, _, _, initial, final_xor = (constant(found.expression) for found in instance.arguments)
    width = number(instance.type.partition("<")[2].removesuffix(">")).bits
    return Crc(width, coefficients, bool(is_reversed), initial, final_xor)


def constant(node: nodes.Node) -> int:
    """The number or truth that an expression is; raises ``NotImplementedError`` where it is none."""
    match node:
        case nodes.Constant(value=value) | nodes.Literal(value=bool(value)):
            return int(value)
        case nodes.Cast(expr=expression):
            return constant(expression)
    raise NotImplementedError(f"{node} as a constant")


def flat(node: nodes.Node) -> Iterator[nodes.Node]:
    """The values in a list, or one value."""
    if isinstance(node, nodes.Components):
        for component in node.components:
            yield from flat(component)
    else:
        yield node.expression if isinstance(node, nodes.NamedExpression) else node
