"""Compiler of primitives on whole headers, stacks and unions."""

from collections.abc import Iterator

from emulator.compiler.expressions import ExpressionCompiler, constant, variable_words, word
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
            case "assign_VL":
                target, source = (self._expressions.references.variable(part) for part in parameters)
                if target is None or source is None:
                    raise UnsupportedError("a variable-length field and a number in an assignment", node)
                pairs_of_words = variable_words(target, source, node)
                return [f"{word(to)} = {word(of)}" for to, of in pairs_of_words]
            case "assign_union":
                pairs = zip(*(self._layout.unions[node["value"]] for node in parameters), strict=True)
                return [line for target, source in pairs for line in self._copy(target, source)]
            case "push" | "pop":
                moved = self._expressions.range_of(parameters[1])
                if moved.low != moved.high:
                    raise UnsupportedError(f"primitive {node['op']!r} by a number that is not constant", node)
                stacks = self._shifted_stacks(node)
                is_push = node["op"] == "push"
                lines = self._count_shift(stacks[0], moved.low, is_push=is_push)
                return lines + [line for stack in stacks for line in self._shift(stack, moved.low, is_push=is_push)]
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
        copied = [f"{word(target)} = {word(source)}" for target, source in _copied_words(to, of)]
        return lines + [f"    {line}" for line in (*copied, *map(_invalid, self._layout.siblings(to)))]

    def _assign_stack(self, target: Stack, source: Stack) -> list[str]:
        lines = [f"{word(target.next_word)} = {word(source.next_word)}"]
        pairs = zip(target.headers, source.headers, strict=True)
        return lines + [line for to, of in pairs for line in self._copy(to, of)]

    def _shifted_stacks(self, node: Json) -> list[Stack]:
        """Return the stack that a push or pop names, or the stacks of its members where its elements are unions."""
        kind, name = node["parameters"][0]["type"], node["parameters"][0]["value"]
        if kind == "header_union_stack":
            return [stack for (union_stack, _), stack in self._layout.union_stacks.items() if union_stack == name]
        if kind != "header_stack":
            raise UnsupportedError(f"primitive {node['op']!r} on a {kind}", node)
        return [self._layout.stacks[name]]

    def _count_shift(self, stack: Stack, count: int, *, is_push: bool) -> list[str]:
        """Set the next element of a stack that is pushed or popped."""
        following = word(stack.next_word)
        if is_push:
            return [f"{following} = min({following} + {constant(count)}, {constant(len(stack.headers))})"]
        return [f"{following} = {following} - min({following}, {constant(count)})"]

    def _shift(self, stack: Stack, count: int, *, is_push: bool) -> list[str]:
        """Push or pop elements: others take their places, and as many become invalid.

        As on BMv2, elements swap what they hold. Fields that may be read in an invalid element follow all swaps.
        """
        size, lines = len(stack.headers), []
        if is_push:
            order = range(size - 1, count - 1, -1)
            sources = {number: number - count for number in order}
        else:
            order = range(size - count)
            sources = {number: number + count for number in order}
        places = list(range(size))
        for number in order:
            other = sources[number]
            places[number], places[other] = places[other], places[number]
        swapped: list[tuple[int, int]] = []
        for number in order:
            to, of = stack.headers[number], stack.headers[sources[number]]
            moved = list(_copied_words(to, of))
            lines.append(f"{word(to.valid_word)} = {word(of.valid_word)}")
            lines += [f"{word(target)} = {word(source)}" for target, source in moved if not self._is_exposed(target)]
        for number, place in enumerate(places):
            swapped += _copied_words(stack.headers[number], stack.headers[place])
        swapped = [pair for pair in swapped if pair[0] != pair[1] and self._is_exposed(pair[0])]
        lines += [f"left_{number} = {word(source)}" for number, (_, source) in enumerate(swapped)]
        lines += [f"{word(target)} = left_{number}" for number, (target, _) in enumerate(swapped)]
        return lines + [_invalid(stack.headers[number]) for number in range(size) if number not in sources]

    def _is_exposed(self, index: int) -> bool:
        return index in self._layout.exposed_words


def _invalid(header: Header) -> str:
    return f"{word(header.valid_word)} = U(0)"


def _copied_words(to: Header, of: Header) -> Iterator[tuple[int, int]]:
    """Return each word of a header with that of another one of its type."""
    for name, field in to.fields.items():
        yield from zip(field.words, of.fields[name].words, strict=True)
