"""A small program that routes and marks, and can lose every n-th packet; it compiles in a fraction of the time."""

import json
from functools import cache

from emulator.compiler.program import Program, compile_program
from emulator.entries import ActionCall
from emulator.fabric import EmulatedFabric
from emulator.host_options import HostOptions
from tests.emulator.fabrics import prefix, routing_of
from tests.emulator.programs import Json, trainyard_json
from topologies.fabric import Fabric

NEVER = (1 << 19) - 1
ETHERNET = {"destination": 48, "source": 48, "ether_type": 16}
IPV4 = {"version": 8, "dscp": 6, "ecn": 2, "length": 16, "id": 32, "ttl": 8, "protocol": 8, "checksum": 16}
IPV4 |= {"source": 32, "target": 32}


def marked(
    fabric: Fabric,
    options: HostOptions | None = None,
    *,
    mark_from: int = NEVER,
    lose_every: dict[str, int] | None = None,
    rate_scale: float = 1.0,
    queue_limit_bytes: int = 16_000_000,
    trace_rows: int = 0,
    cores: int = 1,
) -> EmulatedFabric:
    """Return the fabric in virtual time; queues of ``mark_from`` packets mark, and these switches lose every n-th."""
    result = EmulatedFabric(
        fabric,
        program(),
        options,
        rate_scale=rate_scale,
        queue_limit_bytes=queue_limit_bytes,
        trace_rows=trace_rows,
        cores=cores,
    )
    routing = routing_of(fabric)
    for name, switch in result.switches.items():
        switch.clear()
        for route in routing.routes(name):
            port = fabric.links[route.links[0]].source_port
            switch.insert("route", prefix(route.address, route.prefix_length), ActionCall("forward", (port,)))
        period = (lose_every or {}).get(name, 0)
        switch.set_default("treatment", ActionCall("treat", (mark_from, period)))
    return result


@cache
def program() -> Program:
    """The program, compiled."""
    return compile_program(json.dumps(marking_json()))


def marking_json() -> Json:
    """Route by IPv4; in egress mark ECN-capable packets that found a long queue, and lose data by its count."""
    standard = next(kind for kind in trainyard_json()["header_types"] if kind["name"] == "standard_metadata")
    types = {"scalars_t": {"count": 32}, "ethernet_t": ETHERNET, "ipv4_t": IPV4}
    return {
        "program": "marking",
        "header_types": [
            standard,
            *(
                {"name": name, "fields": [[field, bits, False] for field, bits in fields.items()]}
                for name, fields in types.items()
            ),
        ],
        "headers": [
            {"name": "standard_metadata", "header_type": "standard_metadata", "metadata": True},
            {"name": "scalars", "header_type": "scalars_t", "metadata": True},
            {"name": "ethernet", "header_type": "ethernet_t", "metadata": False},
            {"name": "ipv4", "header_type": "ipv4_t", "metadata": False},
        ],
        "errors": [["NoError", 0], ["PacketTooShort", 1]],
        "parsers": [{"name": "parser", "init_state": "start", "parse_states": [_start()]}],
        "deparsers": [{"name": "deparser", "order": ["ethernet", "ipv4"], "primitives": []}],
        "counter_arrays": [],
        "register_arrays": [{"name": "counts", "size": 1, "bitwidth": 32}],
        "calculations": [],
        "checksums": [],
        "actions": _actions(),
        "pipelines": [_pipeline("ingress", _route()), _pipeline("egress", _treatment())],
    }


def _start() -> Json:
    extracts = [_do("extract", {"type": "regular", "value": name}) for name in ("ethernet", "ipv4")]
    end = {"type": "default", "value": None, "mask": None, "next_state": None}
    return {"name": "start", "parser_ops": extracts, "transition_key": [], "transitions": [end]}


def _actions() -> list[Json]:
    ecn, dscp, count = _field("ipv4.ecn"), _field("ipv4.dscp"), _field("scalars.count")
    depth = _field("standard_metadata.enq_qdepth")
    forward = [
        _assign("standard_metadata.egress_spec", _data(0)),
        _assign("standard_metadata.priority", _op(">>", dscp, _constant(3))),
    ]
    counts = {"type": "register_array", "value": "counts"}
    treat = [
        _unless(_op("and", _op("!=", ecn, _constant(0)), _op(">=", depth, _data(0))), 2),
        _assign("ipv4.ecn", _constant(3)),
        _unless(_op("and", _op("!=", _data(1), _constant(0)), _op("==", dscp, _constant(0))), 9),
        _do("register_read", count, counts, _constant(0)),
        _assign("scalars.count", _op("&", _op("+", count, _constant(1)), _constant(0xFFFF_FFFF))),
        _unless(_op("==", count, _data(1)), 8),
        _assign("scalars.count", _constant(0)),
        _do("mark_to_drop", {"type": "header", "value": "standard_metadata"}),
        _do("register_write", counts, _constant(0), count),
    ]
    return [_action(0, "forward", [9], forward), _action(1, "treat", [19, 32], treat)]


def _action(number: int, name: str, widths: list[int], body: list[Json]) -> Json:
    data = [{"name": f"p{n}", "bitwidth": bits} for n, bits in enumerate(widths)]
    return {"name": name, "id": number, "runtime_data": data, "primitives": body}


def _route() -> Json:
    key = {"match_type": "lpm", "name": "target", "target": ["ipv4", "target"], "mask": None}
    return _table("route", 0, "forward") | {"key": [key], "match_type": "lpm"}


def _treatment() -> Json:
    default = {"action_id": 1, "action_const": False, "action_data": [hex(NEVER), "0x0"]}
    return _table("treatment", 1, "treat") | {"default_entry": default}


def _table(name: str, action: int, action_name: str) -> Json:
    return {
        "name": name,
        "key": [],
        "match_type": "exact",
        "type": "simple",
        "max_size": 1024,
        "with_counters": False,
        "support_timeout": False,
        "direct_meters": None,
        "action_ids": [action],
        "actions": [action_name],
        "base_default_next": None,
        "next_tables": {action_name: None},
    }


def _pipeline(name: str, table: Json) -> Json:
    return {
        "name": name,
        "init_table": table["name"],
        "tables": [table],
        "action_profiles": [],
        "conditionals": [],
    }


def _field(name: str) -> Json:
    return {"type": "field", "value": name.split(".")}


def _constant(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def _data(index: int) -> Json:
    return {"type": "runtime_data", "value": index}


def _op(operation: str, left: Json, right: Json) -> Json:
    return {"type": "expression", "value": {"op": operation, "left": left, "right": right}}


def _do(operation: str, *parameters: Json) -> Json:
    return {"op": operation, "parameters": list(parameters)}


def _assign(target: str, value: Json) -> Json:
    return _do("assign", _field(target), value)


def _unless(condition: Json, place: int) -> Json:
    """Jump to a primitive unless a condition holds."""
    return _do("_jump_if_zero", condition, _constant(place))
