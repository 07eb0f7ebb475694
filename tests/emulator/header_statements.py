"""Statements of the plain interpreter on whole headers: they are added, removed, copied and moved in their stacks."""

from tests.emulator.evaluator import Evaluator, Packet
from tests.emulator.programs import Json


class HeaderStatements:
    """Executes statements with the headers that an evaluator knows."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def execute(self, packet: Packet, node: Json, arguments: tuple[int, ...]) -> None:
        """Execute one statement. Raises NotImplementedError for another kind."""
        parameters = node["parameters"]
        match node["op"]:
            case "add_header":
                header = self._evaluator.header(packet, parameters[0], arguments)
                if header is not None:
                    self._add_header(packet, header)
            case "remove_header":
                header = self._evaluator.header(packet, parameters[0], arguments)
                packet.valid -= {header}
            case "assign_header":
                target, source = (self._evaluator.header(packet, part, arguments) for part in parameters)
                if target is not None and source is not None:
                    self._copy_header(packet, target, source)
            case "assign_header_stack" | "assign_union":
                target, source = (part["value"] for part in parameters)
                if node["op"] == "assign_header_stack":
                    packet.following[target] = packet.following.get(source, 0)
                known = self._evaluator.stacks | self._evaluator.unions
                for to, of in zip(known[target], known[source], strict=True):
                    self._copy_header(packet, to, of)
            case "push" | "pop":
                self._shift(packet, parameters[0]["value"], int(parameters[1]["value"], 16), node["op"] == "push")
            case other:
                raise NotImplementedError(other)

    def _shift(self, packet: Packet, stack: str, count: int, is_push: bool) -> None:
        """Elements move by so many places; those of unions with all their members."""
        members = (
            self._evaluator.union_stacks[stack]
            if stack in self._evaluator.union_stacks
            else [self._evaluator.stacks[stack]]
        )
        following = packet.following.get(stack, 0) + (count if is_push else -count)
        packet.following[stack] = min(max(following, 0), len(members[0]))
        for elements in members:
            self._shift_headers(packet, elements, count, is_push)

    def _shift_headers(self, packet: Packet, elements: list[str], count: int, is_push: bool) -> None:
        """Headers swap what they hold; those that nothing moves to become invalid."""
        moved = range(len(elements) - 1, count - 1, -1) if is_push else range(len(elements) - count)
        for number in moved:
            one, other = elements[number], elements[number - count if is_push else number + count]
            packet.valid = {{one: other, other: one}.get(header, header) for header in packet.valid}
            for name, *_ in self._evaluator.types[self._evaluator.headers[one]["header_type"]]:
                left, right = (packet.fields.get((header, name), 0) for header in (one, other))
                packet.fields |= {(one, name): right, (other, name): left}
                held = [packet.octets_of.get((header, name), b"") for header in (other, one)]
                packet.octets_of |= {(one, name): held[0], (other, name): held[1]}
        packet.valid -= {header for number, header in enumerate(elements) if number not in moved}

    def make_valid(self, packet: Packet, header: str) -> None:
        """At most one header of a union is valid."""
        for union in self._evaluator.unions.values():
            if header in union:
                packet.valid -= set(union)
        packet.valid.add(header)

    def _add_header(self, packet: Packet, header: str) -> None:
        """A header that is added is zero; one that is there already stays as it is."""
        if header not in packet.valid:
            for name, *_ in self._evaluator.types[self._evaluator.headers[header]["header_type"]]:
                packet.fields[header, name] = 0
                packet.octets_of[header, name] = b""
        self.make_valid(packet, header)

    def _copy_header(self, packet: Packet, target: str, source: str) -> None:
        if source not in packet.valid:
            packet.valid.discard(target)
            return
        self.make_valid(packet, target)
        for name, *_ in self._evaluator.types[self._evaluator.headers[source]["header_type"]]:
            packet.fields[target, name] = packet.fields.get((source, name), 0)
            packet.octets_of[target, name] = packet.octets_of.get((source, name), b"")
