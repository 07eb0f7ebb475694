"""Fields of headers that a program may read while their header is invalid.

BMv2 reads what was left in such a field. To give the same, the emulator clears these fields when a packet arrives and
keeps them while it waits in a queue. For all other fields that would be wasted work, so this module follows the program
and finds out where a header is certainly valid: behind a test of its validity, or behind what makes it valid.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from emulator.compiler.jumps import JUMPS

_Node = dict[str, Any]
_Field = tuple[str, str]
_Headers = frozenset[str]
"""Headers that are certainly valid."""

_MOVES = frozenset({"push", "pop", "assign_header_stack", "assign_union"})


@dataclass(frozen=True)
class Exposed:
    """Fields that may be read while their header is invalid, by header and name.

    ``kept`` are those that may then be read behind the queue, and in which something may be left: their header may have
    been valid before, or the program may have assigned to them. All others are 0.
    """

    fields: frozenset[_Field]
    kept: frozenset[_Field]


def exposed_fields(program: _Node) -> Exposed:
    """Return the fields that may be read while their header is invalid."""
    exposure = _Exposure(program)
    before = exposure.before_queue()
    left = exposure.left()
    behind = exposure.behind_queue()
    return Exposed(before | behind, frozenset(field for field in behind if field in left or field[0] in left))


def _inside(node: _Node) -> _Node:
    """Return the node inside expressions that have no operation of their own."""
    while node.get("type") == "expression" and "op" not in node["value"]:
        node = node["value"]
    return node


class _Exposure:
    def __init__(self, program: _Node) -> None:
        self._program = program
        self._found: set[_Field] = set()
        self._left: set[str | _Field] = set()
        self._metadata = {header["name"] for header in program["headers"] if header["metadata"]}
        self._types = {kind["name"]: [entry[0] for entry in kind["fields"]] for kind in program["header_types"]}
        self._kinds = {header["name"]: header["header_type"] for header in program["headers"]}
        by_id = {header.get("id"): header["name"] for header in program["headers"]}
        self._stacks = {
            stack["name"]: [by_id[number] for number in stack["header_ids"]]
            for stack in program.get("header_stacks", ())
        }
        self._unions = {
            union["name"]: [by_id[number] for number in union["header_ids"]]
            for union in program.get("header_unions", ())
        }
        union_names = {union.get("id"): union["name"] for union in program.get("header_unions", ())}
        for stack in program.get("header_union_stacks", ()):
            elements = (self._unions[union_names[number]] for number in stack["header_union_ids"])
            self._stacks[stack["name"]] = [header for union in elements for header in union]

    @cached_property
    def _actions(self) -> dict[int, _Node]:
        return {action["id"]: action for action in self._program["actions"]}

    def before_queue(self) -> frozenset[_Field]:
        """Follow parser, verified checksums and ingress."""
        self._found = set()
        for parser in self._program["parsers"]:
            if "parse_states" in parser:
                self._parser(parser)
        self._checksums("verify")
        self._read([node.get("elements") for node in self._program.get("learn_lists", ())], frozenset())
        for pipeline in self._program["pipelines"]:
            if pipeline["name"] != "egress":
                self._pipeline(pipeline)
        return self._with_stacks()

    def left(self) -> frozenset[str | _Field]:
        """Return the headers that may have become invalid so far, and the fields assigned to in invalid ones.

        What is read in an element of a stack may come from any other one.
        """
        found = set(self._left)
        for elements in self._stacks.values():
            names = {part[1] for part in found if isinstance(part, tuple) and part[0] in elements}
            found |= {(header, name) for header in elements for name in names}
            if found & {*elements}:
                found |= {*elements}
        return frozenset(found)

    def behind_queue(self) -> frozenset[_Field]:
        """Follow egress, updated checksums and deparser."""
        self._found = set()
        for pipeline in self._program["pipelines"]:
            if pipeline["name"] == "egress":
                self._pipeline(pipeline)
        self._checksums("update")
        for deparser in self._program["deparsers"]:
            self._statements(deparser.get("primitives", ()), frozenset())
        return self._with_stacks()

    def _checksums(self, purpose: str) -> None:
        for checksum in self._program["checksums"]:
            if checksum[purpose]:
                condition = checksum.get("if_cond")
                known = self._condition(condition, frozenset())[0] if condition else frozenset()
                if purpose == "verify":
                    self._read({"type": "field", "value": checksum["target"]}, known)

    def _with_stacks(self) -> frozenset[_Field]:
        for elements in self._stacks.values():  # push and pop move what is left, too
            names = {name for header, name in self._found if header in elements}
            self._found |= {(header, name) for header in elements for name in names}
        return frozenset(self._found)

    # ---- control flow -----------------------------------------------------------------------------------------------

    def _parser(self, parser: _Node) -> None:
        """Follow the states until what is certain at the begin of each no longer changes."""
        states = {state["name"]: state for state in parser["parse_states"]}
        certain: dict[str, _Headers] = {parser["init_state"]: frozenset()}
        waiting = [parser["init_state"]]
        while waiting:
            state = states[waiting.pop()]
            after = self._state(state, certain[state["name"]])
            for following in {transition["next_state"] for transition in state["transitions"]} - {None}:
                met = after & certain[following] if following in certain else after
                if certain.get(following) != met:
                    certain[following] = met
                    waiting.append(following)

    def _state(self, state: _Node, known: _Headers) -> _Headers:
        for operation in state["parser_ops"]:
            target = operation["parameters"][0]
            match operation["op"]:
                case "extract" if target["type"] == "regular":
                    known = self._made_valid(target["value"], known)
                case "extract" | "extract_VL":
                    self._read(operation["parameters"][1:], known)
                    if target["type"] != "stack":
                        known = known - self._beside(target)
                        self._left |= self._beside(target)
                case "primitive":
                    known = self._statements([target], known)
                case "set":
                    self._written(target, known)
                    self._read(operation["parameters"][1], known)
                case _:
                    self._read(operation["parameters"], known)
        self._read(state["transition_key"], known)
        return known

    def _beside(self, target: _Node) -> set[str]:
        """Return the headers of all unions one of which an extraction fills."""
        if target["type"] == "regular":
            return {other for union in self._unions.values() if target["value"] in union for other in union}
        name = target["value"][0]
        return {header for union, headers in self._unions.items() if union.startswith(f"{name}[") for header in headers}

    def _pipeline(self, pipeline: _Node) -> None:
        kinds = ("tables", "conditionals", "action_calls")
        nodes = {node["name"]: node for kind in kinds for node in pipeline.get(kind) or ()}
        certain: dict[str, _Headers] = {}
        waiting: list[tuple[str | None, _Headers]] = [(pipeline["init_table"], frozenset())]
        while waiting:
            name, known = waiting.pop()
            if name is None:
                continue
            met = known & certain[name] if name in certain else known
            if certain.get(name) != met:
                certain[name] = met
                waiting += self._after(nodes[name], met)

    def _after(self, node: _Node, known: _Headers) -> Iterator[tuple[str | None, _Headers]]:
        """Return the successors of a node, with what is certain there."""
        if "expression" in node:
            if_true, if_false = self._condition(node["expression"], known)
            yield node["true_next"], if_true
            yield node["false_next"], if_false
        elif "action_id" in node:
            yield node["next_node"], self._statements(self._actions[node["action_id"]]["primitives"], known)
        else:
            ends = [self._statements(self._actions[number]["primitives"], known) for number in node["action_ids"]]
            is_statement = not node["key"] and len(ends) == 1 and (node.get("default_entry") or {}).get("action_const")
            after = ends[0] if is_statement else known.intersection(*ends)
            for following in {*node["next_tables"].values(), node["base_default_next"]}:
                yield following, after

    def _condition(self, node: _Node, known: _Headers) -> tuple[_Headers, _Headers]:
        """Read a condition; return what is certain if it holds, and if it does not."""
        node = _inside(node)
        if node.get("type") != "expression":
            self._read(node, known)
            return known, known
        operation, left, right = (node["value"].get(part) for part in ("op", "left", "right"))
        match operation:
            case "valid" if right["type"] == "header":
                return known | {right["value"]}, known
            case "not":
                return self._condition(right, known)[::-1]
            case "and":
                if_true, if_false = self._condition(left, known)
                both, neither = self._condition(right, if_true)
                return both, if_false & neither
            case "or":
                if_true, if_false = self._condition(left, known)
                also, neither = self._condition(right, if_false)
                return if_true & also, neither
        self._read(node, known)
        return known, known

    # ---- statements -------------------------------------------------------------------------------------------------

    def _statements(self, primitives: Iterable[_Node], known: _Headers) -> _Headers:
        """Read statements; return what is certain behind them."""
        primitives = list(primitives)
        if not any(node["op"] in JUMPS for node in primitives):
            for node in primitives:
                known = self._statement(node, known)
            return known
        # In whatever order they run, nothing else becomes invalid.
        before = None
        while before != known:
            before = known
            known = known.intersection(*(self._effect(node, known) for node in primitives))
        for node in primitives:
            self._statement(node, known)
        return known

    def _statement(self, node: _Node, known: _Headers) -> _Headers:
        parameters = node["parameters"]
        match node["op"]:
            case "assign" | "register_read" | "modify_field_with_hash_based_offset" | "modify_field_rng_uniform":
                self._written(parameters[0], known)
                self._read(parameters[1:], known)
            case "execute_meter":
                self._written(parameters[-1], known)
                self._read(parameters[:-1], known)
            case _:
                self._read(parameters, known)
        return self._effect(node, known)

    def _effect(self, node: _Node, known: _Headers) -> _Headers:
        parameters = node["parameters"]
        match node["op"]:
            case "add_header" if parameters[0]["type"] == "header":
                return self._made_valid(parameters[0]["value"], known)
            case "remove_header" | "add_header":
                return known - self._lost(parameters[0])
            case "assign_header":
                target, source = parameters
                if target["type"] == source["type"] == "header" and source["value"] in known:
                    return self._made_valid(target["value"], known)
                return known - self._lost(target)
            case operation if operation in _MOVES:
                return known - self._lost(parameters[0])
        return known

    def _lost(self, node: _Node) -> set[str]:
        """Note that what a node may stand for may become invalid."""
        found = self._meant(node)
        self._left |= found
        return found

    def _made_valid(self, header: str, known: _Headers) -> _Headers:
        siblings = {other for union in self._unions.values() if header in union for other in union}
        self._left |= siblings
        return known - siblings | {header}

    def _meant(self, node: _Node) -> set[str]:
        """Return the headers that a node may stand for, with those of the same union."""
        node = _inside(node)
        if node["type"] == "header":
            found = {node["value"]}
        elif node["type"] == "expression":
            found = set(self._stacks.get(node["value"]["left"]["value"], ()))
        else:
            found = {*self._stacks.get(node["value"], ()), *self._unions.get(node["value"], ())}
        return found | {other for union in self._unions.values() if found & {*union} for other in union}

    # ---- values -----------------------------------------------------------------------------------------------------

    def _written(self, node: _Node, known: _Headers) -> None:
        """Read what a target depends on, the index into a stack, and note assignments to what may be invalid."""
        node = _inside(node)
        if node.get("type") == "field" and not isinstance(node["value"][0], dict) and node["value"][0] not in known:
            self._left.add((node["value"][0], node["value"][1]))
        if node.get("type") == "stack_field":
            self._left |= {(header, node["value"][1]) for header in self._stacks[node["value"][0]]}
        if node.get("type") == "expression":
            self._read([node["value"].get("right") if node["value"]["op"] != "access_field" else None], known)
            left = node["value"].get("left")
            if node["value"]["op"] == "access_field":
                number = node["value"]["right"]
                self._left |= {(h, self._types[self._kinds[h]][number]) for h in self._meant(node["value"]["left"])}
            if isinstance(left, dict) and left.get("type") == "expression":
                self._read(left["value"].get("right"), known)

    def _read(self, node: Any, known: _Headers) -> None:
        """Note every field that a piece of JSON reads and whose header may be invalid."""
        if isinstance(node, list):
            for part in node:
                self._read(part, known)
        if not isinstance(node, dict):
            return
        match node.get("type"):
            case "field":
                header, name = node["value"]
                if isinstance(header, dict):
                    self._read(header, known)
                elif name != "$valid$" and header not in self._metadata and header not in known:
                    self._found.add((header, name))
                return
            case "stack_field":
                stack, name = node["value"]
                self._found |= {(header, name) for header in self._stacks[stack]}
                return
        operation = node.get("op")
        if operation in ("and", "or", "not", "valid"):
            self._condition({"type": "expression", "value": node}, known)
            return
        if operation == "?":
            if_true, if_false = self._condition(node["cond"], known)
            self._read(node["left"], if_true)
            self._read(node["right"], if_false)
            return
        if operation == "access_field":
            for header in self._meant(node["left"]) - known:
                self._found.add((header, self._types[self._kinds[header]][node["right"]]))
        for part in node.values():
            self._read(part, known)
