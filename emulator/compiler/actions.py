"""Actions as functions of the generated module: ``action_N(phv, memory, block, data)``."""

from emulator.compiler.clock import now_source
from emulator.compiler.expressions import ExpressionCompiler, constant, word
from emulator.compiler.functions import Function
from emulator.compiler.hashes import HashCompiler
from emulator.compiler.layout import Header, Json, Layout, UnsupportedError
from emulator.compiler.replication import CLONE_FIELDS, CLONE_SESSION, RECIRCULATE, RESUBMIT, SESSION_BITS, hidden_word
from emulator.compiler.tables import Meter, Resources
from emulator.memory import BYTES, COUNTER_WORDS, METER_WORDS, PACKETS

ACTION_PARAMETERS = "phv, memory, block, data"
DROP_PORT = 511

_JUMPS = ("_jump", "_jump_if_zero")
_CLONES = ("clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress")


class ActionCompiler:
    """Turns the primitives of actions into source."""

    def __init__(self, actions: list[Json], layout: Layout, hashes: HashCompiler, resources: Resources) -> None:
        self._actions = actions
        self._layout = layout
        self._hashes = hashes
        self._resources = resources
        self._expressions = ExpressionCompiler(layout)

    def functions(self) -> list[Function]:
        """A function for every action that a table may call."""
        called = {
            action.number
            for table in self._resources.tables.values()
            if not table.is_statement
            for action in table.actions
        }
        return [Function(f"action_{number}", ACTION_PARAMETERS, self.lines(number)) for number in sorted(called)]

    def lines(self, number: int) -> list[str]:
        """The statements of an action."""
        primitives = self._actions[number]["primitives"]
        if not any(primitive["op"] in _JUMPS for primitive in primitives):
            return [line for primitive in primitives for line in self._primitive(primitive)]
        lines = ["resume = 0"]
        for position, primitive in enumerate(primitives):
            lines += [f"if resume <= {position}:", *(f"    {line}" for line in self._primitive(primitive))]
        return lines

    def _primitive(self, node: Json) -> list[str]:
        parameters = node["parameters"]
        match node["op"]:
            case "assign" if parameters[0]["type"] == "field":
                return [self._assign(parameters[0], self._expressions.value(parameters[1]))]
            case "assign_header":
                return self._assign_header(parameters[0]["value"], parameters[1]["value"])
            case "_jump":
                return [f"resume = np.int64({self._expressions.value(parameters[0])})"]
            case "_jump_if_zero":
                condition = self._expressions.value(parameters[0])
                return [f"if not {condition}:", f"    resume = np.int64({self._expressions.value(parameters[1])})"]
            case "register_read":
                return self._register_read(*parameters)
            case "register_write":
                return self._register_write(*parameters)
            case "add_header":
                return self._add_header(self._layout.headers[parameters[0]["value"]])
            case "remove_header":
                return [f"{word(self._layout.headers[parameters[0]['value']].valid_word)} = U(0)"]
            case "mark_to_drop":
                spec = word(self._layout.field(["standard_metadata", "egress_spec"]).word)
                multicast = word(self._layout.field(["standard_metadata", "mcast_grp"]).word)
                return [f"{spec} = {constant(DROP_PORT)}", f"{multicast} = U(0)"]
            case clone if clone in _CLONES:
                session = f"{self._expressions.value(parameters[0])} & {constant((1 << SESSION_BITS) - 1)}"
                wanted = f"{session} | {constant(1 << SESSION_BITS)}"
                return [self._ask(CLONE_SESSION, wanted), self._ask(CLONE_FIELDS, self._list(parameters[1]))]
            case again if again in (RESUBMIT, RECIRCULATE):
                return [self._ask(again, self._list(parameters[0]))]
            case "modify_field_with_hash_based_offset":
                return [self._assign(parameters[0], self._hash_in_range(*parameters[1:]))]
            case "execute_meter":
                return self._execute_meter(*parameters)
            case "count":
                return self._count(parameters[0]["value"], self._expressions.value(parameters[1]))
        raise UnsupportedError(f"primitive {node['op']!r}", node)

    def _assign(self, target: Json, source: str) -> str:
        field = self._layout.field(target["value"])
        return f"{word(field.word)} = {source} & {constant(field.mask)}"

    def _ask(self, request: str, source: str) -> str:
        return f"{word(hidden_word(self._layout, request))} = {source}"

    def _list(self, number: Json) -> str:
        return f"{self._expressions.value(number)} & {constant(0xFFFF)}"

    def _add_header(self, header: Header) -> list[str]:
        """A header that was not there is zero, whatever these words held before."""
        lines = [f"if {word(header.valid_word)} == U(0):", f"    {word(header.valid_word)} = U(1)"]
        return lines + [f"    {word(field.word)} = U(0)" for field in header.fields.values()]

    def _assign_header(self, target: str, source: str) -> list[str]:
        """Copy a header with its validity; an invalid source leaves the target's fields alone."""
        to, of = self._layout.headers[target], self._layout.headers[source]
        lines = [f"{word(to.valid_word)} = {word(of.valid_word)}", f"if {word(of.valid_word)} != U(0):"]
        return lines + [f"    {word(field.word)} = {word(of.fields[name].word)}" for name, field in to.fields.items()]

    def _register_read(self, target: Json, register: Json, index: Json) -> list[str]:
        """A cell behind the end reads as 0."""
        field = self._layout.field(target["value"])
        lines = [f"index = {self._expressions.value(index)}", f"{word(field.word)} = U(0)"]
        lines += [f"if index < {constant(self._resources.registers[register['value']].size)}:"]
        cell = f"memory[{self._cells(register)} + index]"
        return [*lines, f"    {word(field.word)} = {cell} & {constant(field.mask)}"]

    def _register_write(self, register: Json, index: Json, value: Json) -> list[str]:
        """Writing behind the end does nothing."""
        found = self._resources.registers[register["value"]]
        source = f"{self._expressions.value(value)} & {constant((1 << found.bits) - 1)}"
        lines = [f"index = {self._expressions.value(index)}", f"if index < {constant(found.size)}:"]
        return [*lines, f"    memory[{self._cells(register)} + index] = {source}"]

    def _execute_meter(self, array: Json, index: Json, target: Json) -> list[str]:
        """Behind the end there is no meter, and the target stays as it is."""
        meter = self._resources.meters[array["value"]]
        cells = f"memory[block + U({self._resources.meter_descriptor(meter.name)})]"
        colour = self.colour(meter, f"{cells} + U({METER_WORDS}) * index")
        lines = [f"index = {self._expressions.value(index)}", f"if index < {constant(meter.size)}:"]
        return [*lines, f"    {self._assign(target, colour)}"]

    def colour(self, meter: Meter, place: str) -> str:
        """Source that executes the meter at a place in memory."""
        length = word(self._layout.field(["standard_metadata", "packet_length"]).word)
        amount = length if meter.counts_bytes else constant(1)
        return f"execute_meter(memory, np.int64({place}), {amount}, {now_source(self._layout)})"

    def _cells(self, register: Json) -> str:
        return f"memory[block + U({self._resources.register_descriptor(register['value'])})]"

    def _hash_in_range(self, base: Json, calculation: Json, size: Json) -> str:
        hashed = self._hashes.value(calculation["value"])
        return f"({self._expressions.value(base)} + {hashed} % {self._expressions.value(size)})"

    def _count(self, counter: str, index: str) -> list[str]:
        size = self._resources.counters[counter].size
        cells = f"memory[block + U({self._resources.counter_descriptor(counter)})]"
        length = word(self._layout.field(["standard_metadata", "packet_length"]).word)
        return [
            f"index = {index}",
            f"if index < {constant(size)}:",
            f"    cell = {cells} + U({COUNTER_WORDS}) * index",
            f"    memory[cell + U({PACKETS})] += U(1)",
            f"    memory[cell + U({BYTES})] += {length}",
        ]
