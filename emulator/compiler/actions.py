"""Compiler of actions to functions of the generated module: ``action_N(phv, memory, block, data)``."""

from emulator.compiler.clock import now_source
from emulator.compiler.expressions import ExpressionCompiler, assigned, constant, tuple_of, word
from emulator.compiler.functions import Function
from emulator.compiler.hashes import HashCompiler
from emulator.compiler.headers import HeaderCompiler
from emulator.compiler.jumps import FAILED, HALTS, JUMPS, in_order, is_loop, jump
from emulator.compiler.layout import Json, Layout, UnsupportedError, part_of
from emulator.compiler.ranges import WORD
from emulator.compiler.references import branches
from emulator.compiler.replication import CLONE_FIELDS, CLONE_SESSION, RECIRCULATE, RESUBMIT, SESSION_BITS, hidden_word
from emulator.compiler.resources import Resources
from emulator.compiler.tables import Meter
from emulator.memory import BYTES, COUNTER_WORDS, METER_WORDS, PACKETS

ACTION_PARAMETERS = "phv, memory, block, data"

_GOLDEN = 0x9E37_79B9_7F4A_7C15  # 2^64 divided by the golden ratio: the step of SplitMix64
_LONGEST = (1 << 32) - 1  # what truncate can ask for
_CLONES = ("clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress")
_WITHOUT_MEMORY = frozenset(
    {
        "assign",
        "assign_VL",
        "assign_header",
        "assign_header_stack",
        "assign_union",
        "add_header",
        "remove_header",
        "push",
        "pop",
        "log_msg",
        "no_op",
        "mark_to_drop",
        "modify_field_with_hash_based_offset",
    }
)


class ActionCompiler:
    """Compiles the primitives of actions."""

    def __init__(
        self, actions: list[Json], layout: Layout, hashes: HashCompiler, resources: Resources, drop_port: int
    ) -> None:
        self._actions = actions
        self._layout = layout
        self._hashes = hashes
        self._resources = resources
        self._drop_port = drop_port
        self._expressions = ExpressionCompiler(layout)
        self._headers = HeaderCompiler(layout, self._expressions)

    def functions(self) -> list[Function]:
        """Return a function for every action that a table may call."""
        called = {
            action.number
            for table in self._resources.tables.values()
            if not table.is_statement
            for action in table.actions
        }
        return [Function(f"action_{number}", ACTION_PARAMETERS, self.lines(number)) for number in sorted(called)]

    def lines(self, number: int) -> list[str]:
        """Return the statements of an action."""
        action = self._actions[number]
        parameters = tuple(parameter["bitwidth"] for parameter in action["runtime_data"])
        self._expressions = ExpressionCompiler(self._layout, parameters=parameters)
        self._headers = HeaderCompiler(self._layout, self._expressions)
        primitives = action["primitives"]
        made = [self._primitive(primitive, position) for position, primitive in enumerate(primitives)]
        if not any(primitive["op"] in JUMPS for primitive in primitives):
            return [line for part in made for line in part]
        return in_order(made, loops=is_loop(primitives))

    def statement(self, node: Json) -> list[str]:
        """Return the lines of a primitive in a parser or deparser, which may not use table memory."""
        if node["op"] not in _WITHOUT_MEMORY:
            raise UnsupportedError(f"primitive {node['op']!r} in a parser or deparser", node)
        self._expressions = ExpressionCompiler(self._layout)
        self._headers = HeaderCompiler(self._layout, self._expressions)
        return self._primitive(node)

    def _primitive(self, node: Json, position: int = 0) -> list[str]:
        with part_of(node):
            if node["op"] in JUMPS:
                return self._jump(node, position)
            lines = self._headers.primitive(node)
            return self._other_primitive(node) if lines is None else lines

    def _jump(self, node: Json, position: int) -> list[str]:
        *condition, target = node["parameters"]
        lines = jump(node, position, self._expressions.index(target), self._layout.halt_word)
        if not condition:
            return lines
        return [f"if not {self._expressions.value(condition[0])}:", *(f"    {line}" for line in lines)]

    def _other_primitive(self, node: Json) -> list[str]:
        parameters = node["parameters"]
        match node["op"]:
            case "assign":
                return self._assign(*parameters)
            case "register_read":
                return self._register_read(*parameters)
            case "register_write":
                return self._register_write(*parameters)
            case "mark_to_drop":
                spec = word(self._layout.field(["standard_metadata", "egress_spec"]).word)
                multicast = word(self._layout.field(["standard_metadata", "mcast_grp"]).word)
                return [f"{spec} = {constant(self._drop_port)}", f"{multicast} = U(0)"]
            case clone if clone in _CLONES:
                session = f"{self._expressions.words(parameters[0], 1)} & {constant((1 << SESSION_BITS) - 1)}"
                wanted = f"{session} | {constant(1 << SESSION_BITS)}"
                return [self._ask(CLONE_SESSION, wanted), self._ask(CLONE_FIELDS, self._list(parameters[1]))]
            case again if again in (RESUBMIT, RECIRCULATE):
                return [self._ask(again, self._list(parameters[0]))]
            case "modify_field_with_hash_based_offset":
                return self._hash_in_range(*parameters)
            case "execute_meter":
                return self._execute_meter(*parameters)
            case "count":
                return self._count(parameters[0]["value"], self._expressions.place(parameters[1]))
            case "modify_field_rng_uniform":
                return self._random(*parameters)
            case "exit":
                assert self._layout.exit_word is not None
                return [f"{word(self._layout.exit_word)} = U(1)"]
            case "generate_digest":
                assert self._layout.digest_word is not None
                return [f"{word(self._layout.digest_word)} = {self._list(parameters[1])}"]
            case "truncate":
                return self._truncate(parameters[0])
            case assertion if assertion in HALTS:
                assert self._layout.halt_word is not None
                failed = f"if not {self._expressions.value(parameters[0])}:"
                return [failed, f"    {word(self._layout.halt_word)} = U({FAILED})"]
            case "log_msg" | "no_op":
                return []  # logging has no effect on packet or switch
        raise UnsupportedError(f"primitive {node['op']!r}", node)

    def _assign(self, target: Json, value: Json) -> list[str]:
        fields = self._expressions.references.targets(target)
        return branches(
            [(when, assigned(field, self._expressions.words(value, len(field.words)))) for when, field in fields]
        )

    def _ask(self, request: str, source: str) -> str:
        return f"{word(hidden_word(self._layout, request))} = {source}"

    def _truncate(self, length: Json) -> list[str]:
        """Let at most so many bytes leave; as on BMv2, the least of several lengths counts."""
        assert self._layout.longest_word is not None
        longest = word(self._layout.longest_word)
        lines = [f"longest = min({self._expressions.index(length)}, {constant(_LONGEST)}) + U(1)"]
        return [*lines, f"if {longest} == U(0) or longest < {longest}:", f"    {longest} = longest"]

    def _list(self, number: Json) -> str:
        return f"{self._expressions.words(number, 1)} & {constant(0xFFFF)}"

    def _register_read(self, target: Json, register: Json, index: Json) -> list[str]:
        """Read a cell; an index out of range leaves the target unchanged."""
        fields, found = self._expressions.references.targets(target), self._resources.registers[register["value"]]
        lines = [f"index = {self._expressions.place(index)}", f"if index < {constant(found.size)}:"]
        lines.append(f"    cell = {self._cell(register)}")
        words = [f"memory[cell + U({number})]" if number else "memory[cell]" for number in range(found.cell_words)]
        cases = [(when, assigned(field, tuple_of(_padded(words, len(field.words))))) for when, field in fields]
        return lines + [f"    {line}" for line in branches(cases)]

    def _register_write(self, register: Json, index: Json, value: Json) -> list[str]:
        """Write a cell; an index out of range has no effect."""
        found = self._resources.registers[register["value"]]
        source, mask = self._expressions.words(value, found.cell_words), (1 << found.bits) - 1
        lines = [f"index = {self._expressions.place(index)}", f"if index < {constant(found.size)}:"]
        lines.append(f"    cell = {self._cell(register)}")
        if found.cell_words == 1:
            return [*lines, f"    memory[cell] = {source} & {constant(mask)}"]
        kept = f"value_{found.cell_words}"
        lines.append(f"    {kept} = {source}")
        for number in range(found.cell_words):
            lines.append(f"    memory[cell + U({number})] = {kept}[{number}] & {constant(mask >> 64 * number)}")
        return lines

    def _execute_meter(self, array: Json, index: Json, target: Json) -> list[str]:
        """Execute a meter; an index out of range leaves the target unchanged."""
        meter = self._resources.meters[array["value"]]
        cells = f"memory[block + U({self._resources.meter_descriptor(meter.name)})]"
        colour = self.colour(meter, f"{cells} + U({METER_WORDS}) * index")
        lines = [f"index = {self._expressions.place(index)}", f"if index < {constant(meter.size)}:"]
        return [*lines, *(f"    {line}" for line in self._written(target, colour))]

    def colour(self, meter: Meter, place: str) -> str:
        """Return an expression that executes the meter at a memory offset."""
        length = word(self._layout.field(["standard_metadata", "packet_length"]).word)
        amount = length if meter.counts_bytes else constant(1)
        return f"execute_meter(memory, np.int64({place}), {amount}, {now_source(self._layout)})"

    def _cell(self, register: Json) -> str:
        found = self._resources.registers[register["value"]]
        start = f"memory[block + U({self._resources.register_descriptor(found.name)})]"
        return f"{start} + U({found.cell_words}) * index" if found.cell_words > 1 else f"{start} + index"

    def _hash_in_range(self, target: Json, base: Json, calculation: Json, size: Json) -> list[str]:
        """Hash into a range; size 0 counts as size 1."""
        found, first = self._expressions.range_of(size), self._expressions.range_of(base)
        if not (found.within(WORD) and first.within(WORD)):
            raise UnsupportedError("a hash into a range beyond 64 bits")
        hashed, start = self._hashes.value(calculation["value"]), self._expressions.words(base, 1)
        if found.low == found.high:
            source = f"({start} + {hashed} % {constant(max(found.low, 1))})"
        else:
            source = f"({start} + {hashed} % max({self._expressions.words(size, 1)}, U(1)))"
        return self._written(target, source)

    def _written(self, target: Json, source: str) -> list[str]:
        """Write one word to the field that a node names."""
        fields = self._expressions.references.targets(target)
        return branches(
            [(when, assigned(field, tuple_of(_padded([source], len(field.words))))) for when, field in fields]
        )

    def _random(self, target: Json, low: Json, high: Json) -> list[str]:
        """Draw a number from ``low`` to ``high``; an empty range has no effect."""
        state = f"memory[block + {constant(self._resources.random_word)}]"
        if not all(self._expressions.range_of(end).within(WORD) for end in (low, high)):
            raise UnsupportedError("a random number beyond 64 bits")
        lines = [f"low = {self._expressions.index(low)}", f"high = {self._expressions.index(high)}", "if low <= high:"]
        lines += [f"    {state} += {constant(_GOLDEN)}", f"    drawn = random_bits({state})"]
        lines += ["    if high - low != U(0xffffffffffffffff):", "        drawn = low + drawn % (high - low + U(1))"]
        return lines + [f"    {line}" for line in self._written(target, "drawn")]

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


def _padded(words: list[str], count: int) -> list[str]:
    """Return exactly ``count`` words: the lowest ones, or all of them followed by zeros."""
    return [*words, *["U(0)"] * count][:count]
