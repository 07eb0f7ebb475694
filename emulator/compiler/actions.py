"""Actions as functions of the generated module: ``action_N(phv, p, memory, block, data)``."""

from emulator.compiler.expressions import ExpressionCompiler, constant, word
from emulator.compiler.functions import Function
from emulator.compiler.hashes import HashCompiler
from emulator.compiler.layout import Json, Layout, UnsupportedError
from emulator.compiler.tables import Resources
from emulator.memory import BYTES, COUNTER_WORDS, PACKETS

ACTION_PARAMETERS = "phv, p, memory, block, data"
DROP_PORT = 511


class ActionCompiler:
    """Turns the primitives of actions into source."""

    def __init__(self, layout: Layout, hashes: HashCompiler, resources: Resources) -> None:
        self._layout = layout
        self._hashes = hashes
        self._resources = resources
        self._expressions = ExpressionCompiler(layout)

    def function(self, action: Json, number: int) -> Function:
        """The function of one action."""
        lines: list[str] = []
        for primitive in action["primitives"]:
            lines += self._primitive(primitive)
        return Function(f"action_{number}", ACTION_PARAMETERS, lines)

    def _primitive(self, node: Json) -> list[str]:
        parameters = node["parameters"]
        match node["op"]:
            case "assign" if parameters[0]["type"] == "field":
                return [self._assign(parameters[0], self._expressions.value(parameters[1]))]
            case "add_header":
                return [f"{word(self._layout.headers[parameters[0]['value']].valid_word)} = U(1)"]
            case "remove_header":
                return [f"{word(self._layout.headers[parameters[0]['value']].valid_word)} = U(0)"]
            case "mark_to_drop":
                spec = word(self._layout.field(["standard_metadata", "egress_spec"]).word)
                multicast = word(self._layout.field(["standard_metadata", "mcast_grp"]).word)
                return [f"{spec} = {constant(DROP_PORT)}", f"{multicast} = U(0)"]
            case "modify_field_with_hash_based_offset":
                return [self._assign(parameters[0], self._hash_in_range(*parameters[1:]))]
            case "count":
                return self._count(parameters[0]["value"], self._expressions.value(parameters[1]))
        raise UnsupportedError(f"primitive {node['op']!r}", node)

    def _assign(self, target: Json, source: str) -> str:
        field = self._layout.field(target["value"])
        return f"{word(field.word)} = {source} & {constant(field.mask)}"

    def _hash_in_range(self, base: Json, calculation: Json, size: Json) -> str:
        hashed = self._hashes.value(calculation["value"])
        return f"({self._expressions.value(base)} + {hashed} % {self._expressions.value(size)})"

    def _count(self, counter: str, index: str) -> list[str]:
        size = self._resources.counters[counter].size
        cell = f"np.int64(memory[block + {self._resources.counter_descriptor(counter)}]) + {COUNTER_WORDS} * index"
        length = word(self._layout.field(["standard_metadata", "packet_length"]).word)
        return [
            f"index = np.int64({index})",
            f"if index < {size}:",
            f"    cell = {cell}",
            f"    memory[cell + {PACKETS}] += U(1)",
            f"    memory[cell + {BYTES}] += {length}",
        ]
