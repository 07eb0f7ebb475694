"""Compiler of primitives on whole headers, stacks and unions."""

from emulator.compiler.expressions import ExpressionCompiler, constant, word
from emulator.compiler.layout import Header, Json, Layout, Stack, UnsupportedError
from emulator.compiler.references import branches


class HeaderCompiler:
    """Compiles adding, removing and copying headers, and moving the elements of stacks."""

    def __init__(self, layout: Layout, expressions: ExpressionCompiler) -> None:
        self._layout = layout
        self._expressions = expressions

    def primitive(self, node: Json) -> list[str] | None:
        """Return the lines of a primitive; None if it is not one on headers."""
        parameters = node["parameters"]
        match node["op"]:
            case "add_header":
                found = self._expressions.references.headers(parameters[0])
                return branches([(when, self._add(header)) for when, header in found])
            case "remove_header":
                found = self._expressions.references.headers(parameters[0])
                return branches([(when, [_invalid(header)]) for when, header in found])
            case "assign_header":
                return self._assign(*parameters)
            case "assign_header_stack":
                return self._assign_stack(*(self._layout.stacks[node["value"]] for node in parameters))
            case "assign_union":
                pairs = zip(*(self._layout.unions[node["value"]] for node in parameters), strict=True)
                return [line for target, source in pairs for line in self._copy(target, source)]
            case "push" | "pop":
                if parameters[0]["type"] != "header_stack":
                    raise UnsupportedError(f"primitive {node['op']!r} on a {parameters[0]['type']}", node)
                moved = self._expressions.range_of(parameters[1])
                if moved.low != moved.high:
                    raise UnsupportedError(f"primitive {node['op']!r} by a number that is not constant", node)
                stack = self._layout.stacks[parameters[0]["value"]]
                return _push(stack, moved.low) if node["op"] == "push" else _pop(stack, moved.low)
        return None

    def valid(self, header: Header) -> list[str]:
        """Return the lines that make a header valid, and the other headers of its union invalid."""
        return [f"{word(header.valid_word)} = U(1)", *map(_invalid, self._layout.siblings(header))]

    def _add(self, header: Header) -> list[str]:
        """Add a header: if it was invalid, its fields become zero."""
        lines = [f"if {word(header.valid_word)} == U(0):", *(f"    {line}" for line in self.valid(header))]
        return lines + [f"    {word(index)} = U(0)" for field in header.fields.values() for index in field.words]

    def _assign(self, target: Json, source: Json) -> list[str]:
        references = self._expressions.references
        return branches(
            [
                (" and ".join(part for part in (when, when_too) if part) or None, self._copy(to, of))
                for when, to in references.headers(target)
                for when_too, of in references.headers(source)
            ]
        )

    def _copy(self, to: Header, of: Header) -> list[str]:
        """Copy a header with its validity; an invalid source leaves the target's fields unchanged."""
        if to is of:
            return []
        lines = [f"{word(to.valid_word)} = {word(of.valid_word)}", f"if {word(of.valid_word)} != U(0):"]
        return lines + [f"    {line}" for line in (*_copied_fields(to, of), *map(_invalid, self._layout.siblings(to)))]

    def _assign_stack(self, target: Stack, source: Stack) -> list[str]:
        lines = [f"{word(target.next_word)} = {word(source.next_word)}"]
        pairs = zip(target.headers, source.headers, strict=True)
        return lines + [line for to, of in pairs for line in self._copy(to, of)]


def _invalid(header: Header) -> str:
    return f"{word(header.valid_word)} = U(0)"


def _copied_fields(to: Header, of: Header) -> list[str]:
    return [
        f"{word(target)} = {word(source)}"
        for name, field in to.fields.items()
        for target, source in zip(field.words, of.fields[name].words, strict=True)
    ]


def _moved(to: Header, of: Header) -> list[str]:
    return [f"{word(to.valid_word)} = {word(of.valid_word)}", *_copied_fields(to, of)]


def _push(stack: Stack, count: int) -> list[str]:
    """Push elements: the first ``count`` become invalid, the last ones are lost."""
    size, following = len(stack.headers), word(stack.next_word)
    lines = [f"{following} = min({following} + {constant(count)}, {constant(size)})"]
    for number in range(size - 1, count - 1, -1):
        lines += _moved(stack.headers[number], stack.headers[number - count])
    return [*lines, *map(_invalid, stack.headers[:count])]


def _pop(stack: Stack, count: int) -> list[str]:
    """Pop elements: the first ``count`` are lost, the last ones become invalid."""
    size, following = len(stack.headers), word(stack.next_word)
    lines = [f"{following} = {following} - min({following}, {constant(count)})"]
    for number in range(size - count):
        lines += _moved(stack.headers[number], stack.headers[number + count])
    return [*lines, *map(_invalid, stack.headers[max(size - count, 0) :])]
