"""Conversion of matches and actions between P4Runtime and the switch (specification, section 9.1)."""

from collections.abc import Sequence

from finsy.proto import p4r

from emulator.compiler.tables import MatchKind
from emulator.entries import ActionCall, EntryKey, FieldMatch, RangeMatch
from emulator.meters import MeterRates
from emulator.p4runtime.action_types import Parameter
from emulator.p4runtime.bytestrings import decode_value, encode_value
from emulator.p4runtime.errors import invalid_argument, permission_denied
from emulator.p4runtime.schema import Schema
from emulator.p4runtime.table_types import ActionScope, Matched, MatchField, Table


def decode_key(table: Table, match: Sequence[p4r.FieldMatch], priority: int) -> EntryKey:
    """Return the key of a match and a priority.

    Raises RequestError: OUT_OF_RANGE for a value that does not fit its field, INVALID_ARGUMENT for anything else that
    the table's key does not allow.
    """
    if table.has_priorities and priority <= 0:
        raise invalid_argument(f"table {table.name}: an entry needs a priority above 0, not {priority}")
    if not table.has_priorities and priority != 0:
        raise invalid_argument(f"table {table.name}: its key allows no priority, but {priority} is given")
    return EntryKey(decode_match(table, match), priority)


def decode_match(owner: Matched, match: Sequence[p4r.FieldMatch]) -> tuple[FieldMatch | RangeMatch, ...]:
    """Return the fields of a match, in the order of the owner's key. Raises RequestError as ``decode_key`` does."""
    given: dict[int, p4r.FieldMatch] = {}
    for message in match:
        field_id = message.field_id
        if field_id not in owner.field_ids:
            raise invalid_argument(f"{owner.place}: its key has no field with id {field_id}")
        if field_id in given:
            raise invalid_argument(f"{owner.place}: field {field_id} is given twice")
        given[field_id] = message
    return tuple([_decode_field(field, given.get(field.id)) for field in owner.match_fields])


def encode_key(table: Table, key: EntryKey) -> p4r.TableEntry:
    """Return a table entry with only its key: canonical values, and no fields that match everything."""
    return p4r.TableEntry(table_id=table.id, priority=key.priority, match=encode_match(table, key.match))


def encode_match(owner: Matched, match: Sequence[FieldMatch | RangeMatch]) -> list[p4r.FieldMatch]:
    """Encode a match: canonical values, and no fields that match everything."""
    pairs = zip(owner.match_fields, match, strict=True)
    return [_encode_field(field, part) for field, part in pairs if part != _anything(field)]


def decode_action(schema: Schema, table: Table, message: p4r.Action, *, as_default: bool = False) -> ActionCall:
    """Return an action of the table, with its arguments in order.

    Raises RequestError: INVALID_ARGUMENT for an unknown action or wrong arguments, OUT_OF_RANGE for a value that does
    not fit, PERMISSION_DENIED for an action that the table may not use here.
    """
    action = schema.action(message.action_id)
    scope = table.scopes.get(action.id)
    if scope is None:
        raise invalid_argument(f"table {table.name} has no action {action.name}")
    if scope is (ActionScope.ENTRIES_ONLY if as_default else ActionScope.DEFAULT_ONLY):
        place = "as its default" if as_default else "in its entries"
        raise permission_denied(f"table {table.name} may not use action {action.name} {place}")
    values = {parameter.param_id: parameter.value for parameter in message.params}
    if len(values) != len(message.params):
        raise invalid_argument(f"action {action.name}: a parameter is given twice")
    if values.keys() != action.parameter_ids:
        wanted = ", ".join(f"{parameter.name} ({parameter.id})" for parameter in action.parameters) or "none"
        raise invalid_argument(f"action {action.name}: its parameters are {wanted}, but {sorted(values)} are given")
    arguments: list[int] = []
    unused: list[int] = []
    for parameter in action.parameters:
        value = _decoded(parameter, values[parameter.id])
        (unused if parameter.is_dropped else arguments).append(value)
    return ActionCall(action.name, tuple(arguments), tuple(unused))


def encode_action(schema: Schema, call: ActionCall) -> p4r.Action:
    """Encode an action with its arguments in canonical form."""
    action = schema.actions_by_name[call.action]
    message = p4r.Action(action_id=action.id)
    arguments, unused = iter(call.arguments), iter(call.unused)
    for parameter in action.parameters:
        # The program's own calls do not say what it does not use.
        value = next(unused, 0) if parameter.is_dropped else next(arguments)
        message.params.add(param_id=parameter.id, value=_encoded(parameter, value))
    return message


def decode_rates(message: p4r.MeterConfig) -> MeterRates:
    """Decode rates. Raises RequestError, INVALID_ARGUMENT, or InvalidRequestError for impossible rates."""
    if message.eburst:
        raise invalid_argument("the excess burst is for single-rate meters; this one has two rates")
    return MeterRates(message.cir, message.cburst, message.pir, message.pburst)


def encode_rates(rates: MeterRates) -> p4r.MeterConfig:
    """Encode rates."""
    return p4r.MeterConfig(
        cir=rates.committed_rate, cburst=rates.committed_burst, pir=rates.peak_rate, pburst=rates.peak_burst
    )


def leading_ones(width_bits: int, count: int) -> int:
    """Return the mask of a prefix."""
    return ((1 << count) - 1) << (width_bits - count)


def _decode_field(field: MatchField, message: p4r.FieldMatch | None) -> FieldMatch | RangeMatch:
    where = field.place
    if message is None:
        if field.kind is MatchKind.EXACT:
            raise invalid_argument(f"{where}: an exact field must be given")
        return _anything(field)
    kind = message.WhichOneof("field_match_type")
    if kind != field.kind:
        raise invalid_argument(f"{where}: the match is {field.kind}, not {kind or 'unset'}")
    match field.kind:
        case MatchKind.EXACT:
            return FieldMatch(_decoded(field, message.exact.value), field.full_mask)
        case MatchKind.OPTIONAL:
            return FieldMatch(_decoded(field, message.optional.value), field.full_mask)
        case MatchKind.LPM:
            length = message.lpm.prefix_len
            if not 0 < length <= field.width_bits:
                raise invalid_argument(f"{where}: prefix length {length} is not within 1 to {field.width_bits}")
            mask = leading_ones(field.width_bits, length)
            return _masked(decode_value(message.lpm.value, field.width_bits, where), mask, where)
        case MatchKind.TERNARY:
            mask = decode_value(message.ternary.mask, field.width_bits, where)
            if mask == 0:
                raise invalid_argument(f"{where}: a field that matches everything must be left out")
            return _masked(decode_value(message.ternary.value, field.width_bits, where), mask, where)
        case MatchKind.RANGE:
            low = decode_value(message.range.low, field.width_bits, where)
            high = decode_value(message.range.high, field.width_bits, where)
            if low > high:
                raise invalid_argument(f"{where}: a range cannot begin at {low:#x} and end at {high:#x}")
            if RangeMatch(low, high) == _anything(field):
                raise invalid_argument(f"{where}: a field that matches everything must be left out")
            return RangeMatch(low, high)


def _decoded(field: MatchField | Parameter, data: bytes) -> int:
    """Return the number of a value or text."""
    if field.texts is not None:
        return field.texts.number(data, field.width_bits, field.place)
    return decode_value(data, field.width_bits, field.place)


def _encoded(field: MatchField | Parameter, value: int) -> bytes:
    return encode_value(value) if field.texts is None else field.texts.text(value)


def _anything(field: MatchField) -> FieldMatch | RangeMatch:
    """Return the match of an omitted field."""
    return RangeMatch(0, field.full_mask) if field.kind is MatchKind.RANGE else FieldMatch(0, 0)


def _masked(value: int, mask: int, where: str) -> FieldMatch:
    if value & ~mask:
        raise invalid_argument(f"{where}: value {value:#x} has bits outside its mask {mask:#x}")
    return FieldMatch(value, mask)


def _encode_field(field: MatchField, match: FieldMatch | RangeMatch) -> p4r.FieldMatch:
    message = p4r.FieldMatch(field_id=field.id)
    if isinstance(match, RangeMatch):
        message.range.low, message.range.high = encode_value(match.low), encode_value(match.high)
        return message
    value = _encoded(field, match.value)
    match field.kind:
        case MatchKind.OPTIONAL:
            message.optional.value = value
        case MatchKind.LPM:
            message.lpm.value = value
            message.lpm.prefix_len = match.mask.bit_count()
        case MatchKind.TERNARY:
            message.ternary.value = value
            message.ternary.mask = encode_value(match.mask)
        case _:
            message.exact.value = value
    return message
