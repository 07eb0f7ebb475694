"""A trace as text that people read, and as values for JSON."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from emulator.entries import ActionCall, EntryAction, EntryKey, FieldMatch, GroupReference, MemberReference, RangeMatch
from emulator.tracing import steps

_PS_PER_US = 1_000_000
_INDENT = " " * 14
_MOST_STATES = 100


def as_text(trace: steps.PacketTrace) -> str:
    """Return a trace as lines of text: what happens at each time, indented by what it changes.

    Where a parser goes through very many states, those after the first hundred are counted.
    """
    lines = []
    before = None
    states = 0
    for step in trace.steps:
        if isinstance(step, steps.ParserState):
            states += 1
            if states > _MOST_STATES:
                continue
        elif states:
            if states > _MOST_STATES:
                lines.append(f"{_INDENT}{states - _MOST_STATES:,} more parser states")
            states = 0
        time = "" if step.time_ps == before else f"{step.time_ps / _PS_PER_US:.6f}"
        before = step.time_ps
        first, *rest = _lines(step)
        who = f"[{step.packet}] " if step.packet else ""
        lines += [f"{time:>12}  {who}{first}", *(f"{_INDENT}  {line}" for line in rest)]
    if not trace.is_complete:
        lines.append(f"{_INDENT}still under way")
    return "\n".join(lines)


def as_json(trace: steps.PacketTrace) -> dict[str, Any]:
    """Return a trace as values for JSON: bytes as hexadecimal digits, and the kind of each step as ``step``."""
    return {
        "is_complete": trace.is_complete,
        "steps": [{"step": _snake(type(step).__name__), **_values(step)} for step in trace.steps],
    }


def _lines(step: steps.AnyStep) -> Iterator[str]:
    match step:
        case steps.Arrived():
            way = "comes back" if step.port is None else f"arrives by port {step.port}"
            yield f"switch {step.switch}: packet {way}, {step.length} bytes"
            yield step.octets.hex(" ", -4)
        case steps.ParserState():
            yield f"parser state {step.name}"
        case steps.Condition():
            yield f"if {step.source or step.name}: {'true' if step.is_true else 'false'}"
        case steps.TableApplied():
            yield from _table_lines(step)
        case steps.Executed():
            yield f"execute {step.action}"
        case steps.ChecksumsDone():
            yield "update checksums" if step.is_update else "verify checksums"
        case steps.Queued():
            ahead = f"{step.packets_ahead} packets ({step.bytes_ahead} bytes) ahead"
            yield f"switch {step.switch}: joins the queue of port {step.port}, level {step.level}, {ahead}"
        case steps.LeftQueue():
            waited = f"{step.waited_ps / _PS_PER_US:.6f} us"
            yield f"switch {step.switch}: leaves the queue of port {step.port} after {waited}; egress"
        case steps.Copied():
            yield f"copy {step.copy}: {step.reason}"
        case steps.DigestTold():
            yield f"switch {step.switch}: digest, list {step.number}"
        case steps.Sent():
            arrives = f"arrives at {step.arrives_ps / _PS_PER_US:.6f}"
            yield f"switch {step.switch}: sent by port {step.port}, {step.length} bytes, {arrives}"
            yield step.octets.hex(" ", -4)
        case steps.Delivered():
            yield f"delivered to {step.to}, {step.length} bytes"
        case steps.Dropped():
            yield f"dropped by {step.switch or 'a host'}: {step.reason}"
    for change in getattr(step, "changes", ()):
        yield f"{change.field}: {change.before:#x} -> {change.after:#x}"


def _table_lines(step: steps.TableApplied) -> Iterator[str]:
    yield f"table {step.table}: {'hit' if step.is_hit else 'miss'}"
    for value in step.key:
        yield f"key {value.field} ({value.match}): {value.value:#x}"
    if step.entry is not None and step.entry_action is not None:
        yield f"entry {_entry_text(step)}: {_action_text(step.entry_action)}"
    if step.member_id is not None:
        yield f"member {step.member_id}"
    called = ", ".join(f"{argument.name}={argument.value:#x}" for argument in step.arguments)
    yield f"action {step.action}({called})" if step.action else "no action"


def _entry_text(step: steps.TableApplied) -> str:
    assert step.entry is not None
    parts = [_match_text(value, match) for value, match in zip(step.key, step.entry.match, strict=True)]
    priority = f", priority {step.entry.priority}" if step.entry.priority else ""
    return ", ".join(parts) + priority


def _match_text(value: steps.KeyValue, match: FieldMatch | RangeMatch) -> str:
    if isinstance(match, RangeMatch):
        return f"{match.low:#x}..{match.high:#x}"
    full = (1 << value.bits) - 1
    if match.mask == full:
        return f"{match.value:#x}"
    if value.match == "lpm":
        return f"{match.value:#x}/{match.mask.bit_count()}"
    return f"{match.value:#x} &&& {match.mask:#x}" if match.mask else "*"


def _action_text(action: EntryAction) -> str:
    match action:
        case ActionCall(name, arguments):
            return f"{name}({', '.join(f'{argument:#x}' for argument in arguments)})"
        case MemberReference(member_id):
            return f"member {member_id}"
        case GroupReference(group_id):
            return f"group {group_id}"
    return "a set of actions"


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _values(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, EntryKey | FieldMatch):
        return {name: _values(part) for name, part in value._asdict().items()}
    if isinstance(value, tuple):
        return [_values(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: _values(getattr(value, field.name)) for field in fields(value)}
        return named if isinstance(value, _PLAIN) else {"type": _snake(type(value).__name__), **named}
    return value


_PLAIN = (steps.Step, steps.FieldChange, steps.KeyValue, steps.Argument)
