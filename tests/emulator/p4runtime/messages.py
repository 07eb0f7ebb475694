"""P4Runtime messages for the small program."""

from finsy.proto import p4r
from google.protobuf import text_format

from emulator.p4runtime.bytestrings import encode_value

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE

FLOW = "table_id: 0x02000001"
LEVEL = "table_id: 0x02000002"
ROUTING = "table_id: 0x02000003"
ACCESS = "table_id: 0x02000004"
FIXED = "table_id: 0x02000005"
KEYLESS = "table_id: 0x02000006"


def text_of(value: int | bytes) -> str:
    """A binary string in text form, canonical where a number is given."""
    data = encode_value(value) if isinstance(value, int) else value
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


def exact(field_id: int, value: int | bytes) -> str:
    return f"match {{ field_id: {field_id} exact {{ value: {text_of(value)} }} }}"


def lpm(value: int, prefix_len: int) -> str:
    return f"match {{ field_id: 1 lpm {{ value: {text_of(value)} prefix_len: {prefix_len} }} }}"


def ternary(value: int, mask: int) -> str:
    return f"match {{ field_id: 1 ternary {{ value: {text_of(value)} mask: {text_of(mask)} }} }}"


def optional(field_id: int, value: int) -> str:
    return f"match {{ field_id: {field_id} optional {{ value: {text_of(value)} }} }}"


def flow_key(source: int = 10) -> str:
    return f"{FLOW} {exact(1, source)} {exact(2, 80)}"


def set_level(level: int) -> str:
    return f"action {{ action {{ action_id: 0x01000001 params {{ param_id: 1 value: {text_of(level)} }} }} }}"


DROP = "action { action { action_id: 0x01000003 } }"


def table_entry(text: str) -> p4r.Entity:
    return p4r.Entity(table_entry=text_format.Parse(text, p4r.TableEntry()))


def direct_counter(text: str) -> p4r.Entity:
    return p4r.Entity(direct_counter_entry=text_format.Parse(text, p4r.DirectCounterEntry()))


def counter(text: str) -> p4r.Entity:
    return p4r.Entity(counter_entry=text_format.Parse(text, p4r.CounterEntry()))


def member(member_id: int, port: int = 1) -> p4r.Entity:
    action = p4r.Action(action_id=0x01000004)
    action.params.add(param_id=1, value=bytes([port]))
    action.params.add(param_id=2, value=b"\2\0\0\0\0\1")
    return p4r.Entity(
        action_profile_member=p4r.ActionProfileMember(action_profile_id=0x11000001, member_id=member_id, action=action)
    )


def group(
    group_id: int, weights: dict[int, int], max_size: int = 8, watch_ports: dict[int, bytes] | None = None
) -> p4r.Entity:
    message = p4r.ActionProfileGroup(action_profile_id=0x11000001, group_id=group_id, max_size=max_size)
    for member_id, weight in weights.items():
        message.members.add(member_id=member_id, weight=weight, watch_port=(watch_ports or {}).get(member_id))
    return p4r.Entity(action_profile_group=message)


def one_shot(*actions: str) -> str:
    """The action of an entry that brings its own actions, each an ``out``."""
    joined = " ".join(f"action_profile_actions {{ {action} }}" for action in actions)
    return f"action_profile_action_set {{ {joined} }}"


def out(port: int, weight: int = 1) -> str:
    """One action of a one-shot set."""
    parameters = f"params {{ param_id: 1 value: {text_of(port)} }} params {{ param_id: 2 value: {text_of(1)} }}"
    return f"action {{ action_id: 0x01000004 {parameters} }} weight: {weight}"


def route(prefix: str, action: str) -> p4r.Entity:
    return table_entry(f"{ROUTING} {prefix} action {{ {action} }}")
