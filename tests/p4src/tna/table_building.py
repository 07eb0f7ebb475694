"""Tables as the program declares them, with the entries that it brings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.p4src.tna import ir, nodes
from tests.p4src.tna.expressions import Expressions, join
from tests.p4src.tna.objects import constant
from tests.p4src.tna.tables import KeyField, Table, TableAction


def build_table(
    table: ir.Table, expressions: Expressions, functions: Mapping[str, Any], declared: Mapping[str, ir.Action]
) -> Table:
    """The object of a table; ``functions`` are the translated actions, ``declared`` their nodes."""
    key = table.value("key")
    elements: Sequence[ir.KeyElement] = key.key_elements if key is not None else ()
    fields = [
        KeyField(element.label or "", expressions.number(element.expression).bits, element.match_type.path)
        for element in elements
    ]
    sources = [
        (expressions.source(element.expression), part.bits) for element, part in zip(elements, fields, strict=True)
    ]
    key_of: Callable[[dict[str, int]], int] = eval(f"lambda v: ({join(sources)})[0]", dict(functions))
    calls = [_call(element.expression) for element in table.value("actions").action_list]
    actions = [
        TableAction(
            declared[name].label or name,
            name,
            functions[expressions.scope.actions[name]],
            tuple(parameter.label or parameter.name for parameter in declared[name].parameters),
        )
        for name, _ in calls
    ]
    counters = table.value("counters")
    counter = None
    if counters is not None:
        counter = functions[expressions.scope.externs[counters.expression.path].variable]
    built = Table(table.label or table.name, fields, key_of, actions, counter)
    labels = {action.ir_name: action.name for action in actions}
    default = table.value("default_action")
    if default is not None:
        name, arguments = _call(default.expression)
        built.set_default(labels[name], arguments)
    entries = table.value("entries")
    for number, entry in enumerate(entries.entries if entries is not None else ()):
        name, arguments = _call(entry.action)
        match = list(_match(entry.keys, fields))
        built.insert(match, labels[name], arguments, -number)
    return built


def _call(node: nodes.Node) -> tuple[str, list[int]]:
    """The action that a call names, and its arguments."""
    match node:
        case nodes.PathExpression(path=name):
            return name, []
        case nodes.Call(method=nodes.PathExpression(path=name), arguments=arguments):
            return name, [constant(argument.expression) for argument in arguments]
    raise NotImplementedError(f"{node} as a call of an action")


def _match(keys: nodes.Components, fields: Sequence[KeyField]) -> Iterator[tuple[int, int]]:
    """(value, mask) for each field."""
    for key, part in zip(keys.components, fields, strict=True):
        match key:
            case nodes.Node(node="DefaultExpression"):
                yield 0, 0
            case nodes.Binary(node="Mask", left=value, right=mask):
                yield constant(value), constant(mask)
            case _:
                yield constant(key), (1 << part.bits) - 1
