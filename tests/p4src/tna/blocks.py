"""Parsers, controls and deparsers as Python functions of a packet's dictionary."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.p4src.tna import ir, nodes
from tests.p4src.tna.expressions import Expressions, Extern, Place, Scope, identifier
from tests.p4src.tna.layouts import Layouts
from tests.p4src.tna.objects import Polynomials, extern_object, polynomial
from tests.p4src.tna.statements import INDENT, Statements

PACKETS = frozenset({"packet_in", "packet_out"})
HEADERS, METADATA = "headers", "metadata"


@dataclass(frozen=True, slots=True)
class SharedObject:
    """An object that the source knows by a variable, and tests by its label."""

    variable: str
    label: str
    make: Callable[[], Any]


@dataclass(slots=True)
class Parts:
    """Everything that the blocks of a program share: Python source, and what makes the objects that it names."""

    layouts: Layouts
    lines: list[str] = field(default_factory=list)
    objects: list[SharedObject] = field(default_factory=list)
    tables: list[tuple[ir.Table, str, Expressions]] = field(default_factory=list)
    polynomials: Polynomials = field(default_factory=dict)

    def define(self, head: str, body: Sequence[str]) -> None:
        """Add a function."""
        self.lines += [f"def {head}:", *body, ""]


class BlockTranslator:
    """Adds one block's functions to the parts.

    ``undefined_bits`` are those of its parameters and variables that can be anything before a program writes them; the
    architecture's own parameters are 0.
    """

    def __init__(self, block: ir.Parser | ir.Control, parts: Parts) -> None:
        self._block, self._parts = block, parts
        self._locals = block.parser_locals if isinstance(block, ir.Parser) else block.control_locals
        self.undefined_bits: dict[str, int] = {}
        places: dict[str, Place] = {}
        packet, roots = None, iter((HEADERS, METADATA))
        for parameter in block.parameters:
            if parameter.type in PACKETS:
                packet = parameter.name
            else:
                root = next(roots, parameter.type)
                places[parameter.name] = Place(root)
                bits = parts.layouts.undefined_bits(parameter.type, root)
                self.undefined_bits |= dict.fromkeys(bits, 0) if root == parameter.type else bits
        for variable in self._all_locals():
            places[variable.name] = Place(f"{block.name}.{variable.name}")
            self.undefined_bits |= parts.layouts.undefined_bits(variable.type, places[variable.name].path)
        named = {kind: self._named(kind) for kind in (ir.Table, ir.Action)}
        scope = Scope(places, self._externs(), named[ir.Table], named[ir.Action], packet)
        self._expressions = Expressions(parts.layouts, scope)
        self._statements = Statements(self._expressions)

    def _named(self, kind: type[nodes.Node]) -> dict[str, str]:
        return {
            found.name: identifier(f"{self._block.name}_{found.name}")  # type: ignore[attr-defined]
            for found in self._locals
            if isinstance(found, kind)
        }

    def _all_locals(self) -> Iterator[nodes.Variable]:
        """Variables of the block, and those of its actions and states."""
        bodies = [found.body.components for found in self._locals if isinstance(found, ir.Action)]
        if isinstance(self._block, ir.Parser):
            bodies += [state.components for state in self._block.states]
        else:
            bodies.append(self._block.body.components)
        for node in [*self._locals, *(node for body in bodies for node in body)]:
            if isinstance(node, nodes.Variable):
                yield node

    def translate(self) -> str:
        """Add all functions; the name of the block's own."""
        for local in self._locals:
            if isinstance(local, ir.Action):
                self._action(local)
            elif isinstance(local, ir.Instance) and local.initializer is not None:
                self._register_action(local)
            elif isinstance(local, ir.Table):
                name = self._expressions.scope.tables[local.name]
                self._parts.tables.append((local, name, self._expressions))
        name = identifier(self._block.name)
        if isinstance(self._block, ir.Parser):
            for state in self._block.states:
                if state.name not in ("accept", "reject"):
                    self._state(state)
            self._parts.define(f"{name}(v, r)", [INDENT + f"return {self._state_name('start')}(v, r)"])
        else:
            arguments = "v, out" if self._block.node == "TnaDeparser" else "v"
            self._parts.define(f"{name}({arguments})", self._statements.body((self._block.body,)))
        return name

    def _action(self, action: ir.Action) -> None:
        """Parameters are variables of the Python function."""
        places = {found.name: Place(f"{action.name}.{found.name}", is_variable=True) for found in action.parameters}
        arguments = "".join(f", {place.source}" for place in places.values())
        inside = Statements(Expressions(self._parts.layouts, self._expressions.scope.with_places(places)))
        head = f"{self._expressions.scope.actions[action.name]}(v{arguments})"
        self._parts.define(head, inside.body((action.body,)))

    # ---- parsers ----------------------------------------------------------------------------------------------------

    def _state_name(self, state: str) -> str:
        return identifier(f"{self._block.name}_state_{state}")

    def _state(self, state: ir.State) -> None:
        """A state returns the function of the next, None where the packet is accepted."""
        body = [line for line in self._statements.body(state.components) if line.strip() != "pass"]
        body += [INDENT + line for line in self._transition(state.select_expression)]
        self._parts.define(f"{self._state_name(state.name)}(v, r)", body)

    def _transition(self, select: nodes.PathExpression | nodes.SelectExpression | None) -> Iterator[str]:
        match select:
            case nodes.PathExpression(path=name):
                yield self._goto(name)
            case nodes.SelectExpression(select=nodes.Components(components=keys), select_cases=cases):
                for position, key in enumerate(keys):
                    yield f"k{position} = {self._expressions.source(key)}"
                for case in cases:
                    yield f"if {self._takes(case.keyset)}: {self._goto(case.state.path)}"
                yield "raise NoMatch"
            case _:
                yield "raise NoMatch"

    def _goto(self, state: str) -> str:
        if state == "reject":
            return "raise NoMatch"
        return "return None" if state == "accept" else f"return {self._state_name(state)}"

    def _takes(self, keyset: nodes.Node) -> str:
        parts = keyset.components if isinstance(keyset, nodes.Components) else (keyset,)
        source, conditions = self._expressions.source, []
        for position, part in enumerate(parts):
            match part:
                case nodes.Node(node="DefaultExpression"):
                    continue
                case nodes.Binary(node="Mask", left=value, right=mask):
                    conditions.append(f"k{position} & {source(mask)} == {source(value)} & {source(mask)}")
                case nodes.Binary(node="Range", left=low, right=high):
                    conditions.append(f"{source(low)} <= k{position} <= {source(high)}")
                case nodes.PathExpression(path=name) if name in self._expressions.scope.externs:
                    conditions.append(f"k{position} in {self._expressions.scope.externs[name].variable}")
                case _:
                    conditions.append(f"k{position} == {source(part)}")
        return " and ".join(conditions) or "True"

    # ---- externs ----------------------------------------------------------------------------------------------------

    def _externs(self) -> dict[str, Extern]:
        found: dict[str, Extern] = {}
        parts = self._parts
        for local in self._locals:
            if not isinstance(local, ir.Instance | ir.ValueSet):
                continue
            kind = "value_set" if isinstance(local, ir.ValueSet) else local.type.partition("<")[0]
            variable = identifier(f"{self._block.name}_{local.name}")
            label = local.label or f"{self._block.name}.{local.name}"
            found[local.name] = Extern(kind, variable)
            if isinstance(local, ir.ValueSet):
                parts.objects.append(SharedObject(variable, label, set))
            elif kind == "CRCPolynomial":
                parts.polynomials[local.name] = polynomial(local)
            elif kind != "RegisterAction":
                make = partial(extern_object, local, label, parts.layouts, parts.polynomials)
                parts.objects.append(SharedObject(variable, label, make))
        return found

    def _register_action(self, instance: ir.Instance) -> None:
        """A function of the index: it reads the cell, runs the program's own, and writes the cell."""
        (register,) = (argument.expression for argument in instance.arguments)
        (function,) = instance.initializer.components if instance.initializer else ()
        if not isinstance(register, nodes.PathExpression) or not isinstance(function, ir.Function):
            raise NotImplementedError(f"{instance.type} {instance.name}")
        scope, layouts = self._expressions.scope, self._parts.layouts
        places = {found.name: Place(found.name, is_variable=True) for found in function.parameters}
        places |= {
            found.name: Place(found.name, is_variable=True)
            for found in function.body.components
            if isinstance(found, nodes.Variable)
        }
        value, *results = function.parameters
        leaves = [Place(leaf.path, is_variable=True).source for leaf in layouts.leaves(value.type, value.name)]
        cell = f"{scope.externs[register.path].variable}.cells[index]"
        variables = ", ".join(leaves)
        inside = Statements(Expressions(layouts, scope.with_places(places)))
        body = [INDENT + f"{places[found.name].source} = 0" for found in results]
        body += [INDENT + f"{variables} = {cell}", *inside.body(function.body.components)]
        body.append(INDENT + f"{cell} = {variables}")
        body += [INDENT + f"return {places[found.name].source}" for found in results]
        self._parts.define(f"{scope.externs[instance.name].variable}(v, index)", body)
