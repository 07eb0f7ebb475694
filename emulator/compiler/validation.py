"""Validation of the references, numbers and widths in a BMv2 JSON, before anything is compiled.

CorruptProgramError means that the file is broken, not that the program is unsupported. It names the object and its
invalid reference.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from emulator.compiler.layout import Json, UnsupportedError
from emulator.engine.state import OCTETS

_LISTS = {
    "header": "headers",
    "regular": "headers",
    "stack": "header_stacks",
    "header_stack": "header_stacks",
    "header_union": "header_unions",
    "header_union_stack": "header_union_stacks",
    "calculation": "calculations",
    "counter_array": "counter_arrays",
    "meter_array": "meter_arrays",
    "register_array": "register_arrays",
}
"""Kind of object that a value of this type refers to."""

_PARAMETERS = {
    "_jump": 1,
    "_jump_if_zero": 2,
    "add_header": 1,
    "advance": 1,
    "assert": 1,
    "assign": 2,
    "assign_VL": 2,
    "assign_header": 2,
    "assign_header_stack": 2,
    "assign_union": 2,
    "assume": 1,
    "clone_egress_pkt_to_egress": 2,
    "clone_ingress_pkt_to_egress": 2,
    "count": 2,
    "execute_meter": 3,
    "exit": 0,
    "extract": 1,
    "generate_digest": 2,
    "extract_VL": 2,
    "modify_field_rng_uniform": 3,
    "modify_field_with_hash_based_offset": 4,
    "pop": 2,
    "primitive": 1,
    "push": 2,
    "recirculate": 1,
    "register_read": 3,
    "register_write": 3,
    "remove_header": 1,
    "resubmit": 1,
    "set": 2,
    "truncate": 1,
    "verify": 2,
}
_FIELD_LISTS = {"clone_egress_pkt_to_egress": 1, "clone_ingress_pkt_to_egress": 1, "recirculate": 0, "resubmit": 0}
"""Index of the parameter that is the number of a field list; 0 means none."""

_NODES = ("tables", "conditionals", "action_calls")
"""Kinds of nodes of a pipeline."""

_HIT_OR_MISS = frozenset({"__HIT__", "__MISS__"})


def validate(program: Json) -> None:
    """Raise CorruptProgramError for an object with a missing reference, or an impossible number or width."""
    _Validation(program).all()


class CorruptProgramError(ValueError):
    """A BMv2 JSON with a missing part, a missing reference or a malformed part."""

    def __init__(self, what: str) -> None:
        super().__init__(f"corrupt program: {what}")


def _corrupt(owner: str, what: str) -> CorruptProgramError:
    return CorruptProgramError(f"{owner} {what}")


def _require(owner: str, kind: str, name: Any, known: Collection[Any]) -> None:
    if not isinstance(name, str | int) or name not in known:
        raise _corrupt(owner, f"refers to {kind} {name!r}, which does not exist")


def _require_number(owner: str, what: str, number: Any) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise _corrupt(owner, f"has {what} {number!r}")


def _require_width(owner: str, bits: Any) -> None:
    _require_number(owner, "a width of", bits)
    if bits > 8 * OCTETS:
        raise UnsupportedError(f"{owner} of {bits} bits (a packet keeps {8 * OCTETS})")


def _require_hexadecimal(owner: str, text: Any) -> None:
    try:
        int(text, 16)
    except (TypeError, ValueError):
        raise _corrupt(owner, f"has {text!r} where a hexadecimal number belongs") from None


def _require_fits(owner: str, text: Any, bits: int) -> None:
    _require_hexadecimal(owner, text)
    if not 0 <= int(text, 16) < 1 << bits:
        raise _corrupt(owner, f"has {text!r} where a number of {bits} bits belongs")


def _require_same_count(owner: str, what: str, given: Collection[Any], wanted: int) -> None:
    if len(given) != wanted:
        raise _corrupt(owner, f"has {len(given)} {what}, not {wanted}")


def _named(kind: str, nodes: list[Json]) -> Iterator[tuple[str, Json]]:
    return ((f"{kind} {node['name']!r}", node) for node in nodes)


@dataclass(frozen=True)
class _Validation:
    program: Json

    def all(self) -> None:
        """Check every part."""
        self._names_are_apart()
        self._headers()
        self._parsers()
        self._arrays()
        for owner, node in _named("calculation", self.program["calculations"]):
            self._values(owner, node)
        for owner, node in _named("checksum", self.program["checksums"]):
            self._field(owner, node["target"])
            _require(owner, "calculation", node["calculation"], self._names["calculations"])
            self._values(owner, node)
        for kind, lists in (("field list", "field_lists"), ("digest", "learn_lists")):
            for owner, node in _named(kind, self.program.get(lists, [])):
                self._values(owner, node)
        for owner, action in _named("action", self.program["actions"]):
            for parameter in action["runtime_data"]:
                _require_width(f"parameter {parameter['name']!r} of {owner}", parameter["bitwidth"])
            self._values(owner, action["primitives"], len(action["runtime_data"]))
        for pipeline in self.program["pipelines"]:
            self._pipeline(pipeline)

    # ---- what there is ----------------------------------------------------------------------------------------------

    @cached_property
    def _names(self) -> Mapping[str, frozenset[str]]:
        return {kind: frozenset(node["name"] for node in self.program.get(kind, ())) for kind in _LISTS.values()}

    @cached_property
    def _fields(self) -> Mapping[str, frozenset[str]]:
        """Names of the fields by header type."""
        return {node["name"]: frozenset(name for name, *_ in node["fields"]) for node in self.program["header_types"]}

    @cached_property
    def _header_types(self) -> Mapping[str, str]:
        """Type of every header, and of the elements of every stack."""
        nodes = [*self.program["headers"], *self.program.get("header_stacks", ())]
        return {node["name"]: node["header_type"] for node in nodes}

    @cached_property
    def _actions(self) -> Mapping[int, Json]:
        return {action["id"]: action for action in self.program["actions"]}

    @cached_property
    def _tables(self) -> frozenset[str]:
        return frozenset(table["name"] for pipeline in self.program["pipelines"] for table in pipeline["tables"])

    # ---- parts ------------------------------------------------------------------------------------------------------

    def _names_are_apart(self) -> None:
        """Check that names are unique, except those of actions, which have unique ids."""
        lists = [self.program.get(kind, ()) for kind in ("header_types", *sorted({*_LISTS.values()}))]
        lists += [parser.get("parse_states", ()) for parser in self.program["parsers"]]
        lists += [pipeline["action_profiles"] for pipeline in self.program["pipelines"]]
        lists.append([table for pipeline in self.program["pipelines"] for table in pipeline["tables"]])
        for pipeline in self.program["pipelines"]:
            lists.append([node for kind in _NODES for node in pipeline.get(kind) or ()])
        for nodes in lists:
            names = [node["name"] for node in nodes]
            for name in names:
                if names.count(name) > 1:
                    raise CorruptProgramError(f"two parts of one kind have the name {name!r}")

    def _headers(self) -> None:
        for owner, node in _named("header type", self.program["header_types"]):
            for name, bits, *_ in node["fields"]:
                if bits != "*":
                    _require_width(f"field {name!r} of {owner}", bits)
        ids = {header.get("id") for header in self.program["headers"]}
        for owner, node in _named("header", self.program["headers"]):
            _require(owner, "header type", node["header_type"], self._fields)
        for owner, node in _named("header stack", self.program.get("header_stacks", [])):
            _require(owner, "header type", node["header_type"], self._fields)
            for number in node["header_ids"]:
                _require(owner, "the header with id", number, ids)
        for owner, node in _named("header union", self.program.get("header_unions", [])):
            for number in node["header_ids"]:
                _require(owner, "the header with id", number, ids)

    def _parsers(self) -> None:
        for parser_owner, parser in _named("parser", self.program["parsers"]):
            if "parse_states" not in parser and len(self.program["parsers"]) > 1:
                continue  # refused because of their number
            states = {state["name"] for state in parser["parse_states"]}
            _require(parser_owner, "parser state", parser["init_state"], states)
            for owner, state in _named("parser state", parser["parse_states"]):
                for transition in state["transitions"]:
                    if transition["next_state"] is not None:
                        _require(owner, "parser state", transition["next_state"], states)
                    if transition["type"] == "parse_vset":
                        sets = {node["name"] for node in self.program.get("parse_vsets", ())}
                        _require(owner, "value set", transition["value"], sets)
                    if transition["type"] == "hexstr" and not state["transition_key"]:
                        raise _corrupt(owner, f"compares nothing with {transition['value']!r}")
                    if transition.get("mask") is not None:
                        _require_hexadecimal(owner, transition["mask"])
                self._values(owner, state)
        for owner, node in _named("deparser", self.program["deparsers"]):
            for name in node["order"]:
                _require(owner, "header", name, self._names["headers"])
            self._values(owner, node.get("primitives", []))

    def _arrays(self) -> None:
        for owner, node in _named("value set", self.program.get("parse_vsets", [])):
            _require_number(owner, "a size of", node["max_size"])
        for kind in ("counter", "meter", "register"):
            for owner, node in _named(kind, self.program.get(f"{kind}_arrays", [])):
                if "size" in node:
                    _require_number(owner, "a size of", node["size"])
                if "bitwidth" in node:
                    _require_width(owner, node["bitwidth"])
                if node.get("is_direct"):
                    _require(owner, "table", node["binding"], self._tables)
                if "result_target" in node:
                    self._field(owner, node["result_target"])

    def _pipeline(self, pipeline: Json) -> None:
        nodes = {node["name"] for kind in _NODES for node in pipeline.get(kind) or ()} | {None}
        profiles = {profile["name"] for profile in pipeline["action_profiles"]}
        self._successors(f"pipeline {pipeline['name']!r}", nodes, pipeline["init_table"])
        for owner, node in _named("action profile", pipeline["action_profiles"]):
            _require_number(owner, "a size of", node["max_size"])
            self._values(owner, node)
        for owner, node in _named("condition", pipeline.get("conditionals") or []):
            self._successors(owner, nodes, node["true_next"], node["false_next"])
            self._values(owner, node)
        for owner, node in _named("action call", pipeline.get("action_calls") or []):
            self._successors(owner, nodes, node["next_node"])
            _require(owner, "the action with id", node["action_id"], self._actions)
        for owner, node in _named("table", pipeline["tables"]):
            if node.get("action_profile") is not None:
                _require(owner, "action profile", node["action_profile"], profiles)
            self._successors(owner, nodes, node["base_default_next"], *node["next_tables"].values())
            self._table(owner, node)

    def _table(self, owner: str, node: Json) -> None:
        _require_number(owner, "a size of", node["max_size"])
        if node.get("direct_meters") is not None:
            _require(owner, "meter", node["direct_meters"], self._names["meter_arrays"])
        for field in node["key"]:
            self._field(owner, field["target"])
            if field.get("mask") is not None:
                _require_hexadecimal(owner, field["mask"])
        for identifier in node["action_ids"]:
            _require(owner, "the action with id", identifier, self._actions)
        if node["actions"] != [self._actions[identifier]["name"] for identifier in node["action_ids"]]:
            raise _corrupt(owner, f"refers to actions {node['actions']} by the ids of others, {node['action_ids']}")
        for name in node["next_tables"]:
            _require(owner, "action", name, {*node["actions"], *_HIT_OR_MISS})
        if node.get("default_entry"):
            self._call(f"the default entry of {owner}", node["default_entry"], node["action_ids"])
        for number, entry in enumerate(node.get("entries") or ()):
            place = f"entry {number} of {owner}"
            _require_same_count(place, "values of a key", entry["match_key"], len(node["key"]))
            for part, field in zip(entry["match_key"], node["key"], strict=True):
                if part["match_type"] != field["match_type"]:
                    raise _corrupt(place, f"has a value of {part['match_type']!r} for a key of {field['match_type']!r}")
                for text in (part[name] for name in ("key", "mask", "start", "end") if name in part):
                    _require_fits(place, text, self._bits_of(*field["target"]))
            self._call(place, entry["action_entry"], node["action_ids"])

    def _call(self, owner: str, node: Json, own: list[int]) -> None:
        """Check an action of a table with its arguments."""
        _require(owner, "the action with id", node["action_id"], own)
        _require_same_count(
            owner, "arguments", node["action_data"], len(self._actions[node["action_id"]]["runtime_data"])
        )
        for text, parameter in zip(node["action_data"], self._actions[node["action_id"]]["runtime_data"], strict=True):
            _require_fits(owner, text, parameter["bitwidth"])

    def _successors(self, owner: str, nodes: set[str | None], *names: Any) -> None:
        for name in names:
            if name is not None:
                _require(owner, "node", name, nodes)

    # ---- values -----------------------------------------------------------------------------------------------------

    def _values(self, owner: str, node: Any, num_arguments: int = 0) -> None:
        """Check every name below a node."""
        if isinstance(node, list):
            for part in node:
                self._values(owner, part, num_arguments)
        elif isinstance(node, dict):
            if "op" in node:
                self._operation(owner, node)
            if "type" in node and "value" in node:
                self._value(owner, node["type"], node["value"], num_arguments)
            for part in node.values():
                self._values(owner, part, num_arguments)

    def _operation(self, owner: str, node: Json) -> None:
        operation, parameters = node["op"], node.get("parameters")
        if parameters is not None and operation in _PARAMETERS:
            _require_same_count(f"{operation!r} in {owner}", "parameters", parameters, _PARAMETERS[operation])
            if operation in _FIELD_LISTS and parameters[_FIELD_LISTS[operation]]["type"] == "hexstr":
                number = int(parameters[_FIELD_LISTS[operation]]["value"], 16)
                lists = {0, *(node["id"] for node in self.program["field_lists"])}
                _require(f"{operation!r} in {owner}", "the field list with id", number, lists)
        if operation == "generate_digest" and parameters is not None:
            _require_hexadecimal(f"{operation!r} in {owner}", parameters[1].get("value"))
            numbers = {node["id"] for node in self.program.get("learn_lists", ())}
            _require(f"{operation!r} in {owner}", "the digest with id", int(parameters[1]["value"], 16), numbers)
        if operation == "access_field":
            _require_number(owner, "a field of the number", node["right"])

    def _value(self, owner: str, kind: Any, value: Any, num_arguments: int) -> None:
        match kind:
            case "field":
                # The header may be an element that an expression selects.
                if not isinstance(value, list) or not isinstance(value[0], dict):
                    self._field(owner, value)
            case "stack_field":
                stack, name = value
                _require(owner, "header stack", stack, self._names["header_stacks"])
                _require(owner, f"a field of {stack!r},", name, self._fields[self._header_types[stack]])
            case "runtime_data" | "local":
                _require_number(owner, "a parameter of the number", value)
                if value >= num_arguments:
                    raise _corrupt(owner, f"refers to its parameter {value}, but has {num_arguments}")
            case "lookahead" if num_arguments == 0 and isinstance(value, list):
                for number in value:
                    _require_width(f"a lookahead of {owner}", number)
            case "hexstr":
                _require_hexadecimal(owner, value)
            case "header" if isinstance(value, str) and value in self._names["header_unions"]:
                pass  # p4c calls an element of a stack of unions a header
            case str() if kind in _LISTS:
                _require(owner, kind.replace("_", " "), value, self._names[_LISTS[kind]])

    def _bits_of(self, header: str, name: str) -> int:
        """Return the width of an existing field."""
        types = {node["name"]: node["fields"] for node in self.program["header_types"]}
        widths = {"$valid$": 1} | {field: bits for field, bits, *_ in types[self._header_types[header]]}
        return int(widths[name])

    def _field(self, owner: str, reference: Any) -> None:
        if not isinstance(reference, list) or len(reference) != 2:
            raise _corrupt(owner, f"has {reference!r} where the name of a field belongs")
        header, name = reference
        _require(owner, "header", header, self._names["headers"])
        if name != "$valid$":
            _require(owner, f"a field of {header!r},", name, self._fields[self._header_types[header]])
