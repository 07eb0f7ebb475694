"""A program of everything that the emulator executes and Trainyard's own program does not need.

Its last header, ``dump``, carries the metadata out of the switch, so that every value can be seen.
"""

from typing import Any

from tests.emulator.programs import Json, trainyard_json

METADATA = {"one": 1, "m8": 8, "m12": 12, "m16": 16, "m32": 32, "m64": 64, "count": 64, "less": 8, "more": 8}
MASKS = {"first__d": "0xffff00"}
TERNARY, MIXED, PROFILE = "ingress.ternary", "ingress.mixed", "ingress.profile"
COMPUTE, PICK, SKIP = "ingress.compute", "ingress.pick", "ingress.skip"
COUNTER, REGISTER, NARROW = "ingress.cells", "ingress.words", "ingress.narrow"


def constructs_json() -> Json:
    """The program."""
    program = trainyard_json()
    standard = next(kind for kind in program["header_types"] if kind["name"] == "standard_metadata")
    dump = {**METADATA, "checksum_error": 1, "parser_error": 32, "padding": 2}
    types = {
        "scalars_t": METADATA,
        "first_t": {"kind": 8, "a": 4, "b": 12, "c": 16, "d": 24},
        "second_t": {"x": 5, "y": 3, "z": 24},
        "wide_t": {"w": 64},
        "tag_t": {"t": 16},
        "dump_t": dump,
    }
    instances = {"scalars": "scalars_t", "first": "first_t", "second": "second_t", "wide": "wide_t"}
    instances |= {"tag": "tag_t", "copy": "second_t", "dump": "dump_t"}
    return {
        "program": "constructs",
        "header_types": [standard, *(_header_type(name, fields) for name, fields in types.items())],
        "headers": [
            {"name": "standard_metadata", "header_type": "standard_metadata", "metadata": True},
            *({"name": name, "header_type": kind, "metadata": name == "scalars"} for name, kind in instances.items()),
        ],
        "errors": [["NoError", 0], ["PacketTooShort", 1], ["ParserInvalidArgument", 6], ["Bad", 7]],
        "parsers": [{"name": "parser", "init_state": "start", "parse_states": _states()}],
        "deparsers": [
            {
                "name": "deparser",
                "order": ["tag", "first", "second", "wide", "copy", "dump"],
                "primitives": [
                    _assign("wide.w", _op("%", _field("wide.w"), _op("&", _field("dump.m16"), _constant(255))))
                ],
            }
        ],
        "counter_arrays": [{"name": COUNTER, "size": 20, "is_direct": False}],
        "register_arrays": [
            {"name": REGISTER, "size": 16, "bitwidth": 64},
            {"name": NARROW, "size": 8, "bitwidth": 5},
        ],
        "calculations": [
            {"name": "crc", "algo": "crc32", "input": [_field("first.a"), _field("first.b"), _field("scalars.m64")]},
            {"name": "sum", "algo": "csum16", "input": [_field("first.a"), _field("first.d"), _field("first.kind")]},
            {
                "name": "odd_sum",
                "algo": "csum16",
                "input": [_field("second.y"), _field("second.x"), _constant(0x5A5, bitwidth=12), _field("first.b")],
            },
        ],
        "checksums": [
            _checksum("verified", "sum", "first.c", verify=True, condition=_valid("first")),
            _checksum("updated", "odd_sum", "second.z", verify=False, condition=_valid("second")),
        ],
        "actions": _actions(),
        "pipelines": [_ingress(), _egress()],
    }


def _header_type(name: str, fields: dict[str, int]) -> Json:
    return {"name": name, "fields": [[field, bits, False] for field, bits in fields.items()]}


def _field(name: str) -> Json:
    return {"type": "field", "value": name.split(".")}


def _constant(value: int, **more: int) -> Json:
    return {"type": "hexstr", "value": hex(value), **more}


def _data(index: int) -> Json:
    return {"type": "runtime_data", "value": index}


def _lookahead(offset: int, bits: int) -> Json:
    return {"type": "lookahead", "value": [offset, bits]}


def _op(operation: str, left: Json | None, right: Json, **more: Json) -> Json:
    return {"type": "expression", "value": {"op": operation, "left": left, "right": right, **more}}


def _masked(value: Json, mask: int) -> Json:
    return _op("&", value, _constant(mask))


def _valid(header: str) -> Json:
    return _op("valid", None, {"type": "header", "value": header})


def _do(operation: str, *parameters: Json) -> Json:
    return {"op": operation, "parameters": list(parameters)}


def _assign(target: str, value: Json) -> Json:
    return _do("assign", _field(target), value)


def _header(name: str) -> Json:
    return {"type": "header", "value": name}


def _checksum(name: str, calculation: str, target: str, *, verify: bool, condition: Json) -> Json:
    return {
        "name": name,
        "target": target.split("."),
        "type": "generic",
        "calculation": calculation,
        "verify": verify,
        "update": not verify,
        "if_cond": condition,
    }


def _states() -> list[Json]:
    """``first``, then by its fields and by what lies ahead: ``second``, ``wide``, both, or a few bytes skipped."""

    def state(name: str, operations: list[Json], key: list[Json], transitions: list[tuple[Any, ...]]) -> Json:
        made = [{"type": "hexstr", "value": v, "mask": mask, "next_state": to} for v, mask, to in transitions[:-1]]
        made.append({"type": "default", "value": None, "mask": None, "next_state": transitions[-1][0]})
        return {"name": name, "parser_ops": operations, "transition_key": key, "transitions": made}

    def extract(header: str) -> Json:
        return _do("extract", {"type": "regular", "value": header})

    steps = _op("<<", _masked(_field("first.kind"), 3), _constant(3))
    return [
        state(
            "start",
            [
                extract("first"),
                _do("set", _field("scalars.m8"), _lookahead(3, 7)),
                _do("verify", _op("!=", _field("first.kind"), _constant(0xEE)), _constant(7)),
            ],
            [_field("first.b"), _lookahead(1, 7)],
            [("0x000105", "0x000f07", "second"), ("0x001020", None, "skip"), ("0x000000", "0x000300", "wide"), (None,)],
        ),
        state(
            "second",
            [extract("second"), _do("set", _field("scalars.m12"), _op("+", _field("second.x"), _field("second.y")))],
            [_lookahead(6, 2)],
            [("0x01", None, "wide"), ("0x02", None, "skip"), (None,)],
        ),
        state("skip", [_do("advance", steps)], [], [("wide",)]),
        state("wide", [extract("wide")], [], [(None,)]),
    ]


def _actions() -> list[Json]:
    kind, m8, m16, m32, m64 = (
        _field(f) for f in ("first.kind", "scalars.m8", "scalars.m16", "scalars.m32", "scalars.m64")
    )
    compute = [
        _assign("scalars.m32", _masked(_op("-", kind, _data(0)), 0xFFFF_FFFF)),
        _assign("scalars.less", _op("usat_cast", _op("-", kind, _data(0)), _constant(8))),
        _assign("scalars.more", _op("usat_cast", _op("+", kind, _data(0)), _constant(8))),
        _assign("scalars.m64", _op("^", _op("~", None, m64), _masked(_op("*", m32, m32), (1 << 64) - 1))),
        _assign("scalars.m16", _masked(_op("<<", _data(1), m8), 0xFFFF)),
        _assign("scalars.m12", _op(">>", m64, m8)),
        _assign("scalars.one", _op("b2d", None, _op("and", _op("<", kind, _data(0)), _op(">=", m32, m8)))),
        _do("_jump_if_zero", _op("or", _op(">", kind, m8), _valid("second")), _constant(11)),
        _assign("scalars.m8", _op("?", _data(0), m16, cond=_op("==", _field("first.a"), _constant(3)))),
        _do("add_header", _header("tag")),
        _do("_jump", _constant(13)),
        _do("assign_header", _header("copy"), _header("second")),
        _do("remove_header", _header("second")),
        _do("register_read", _field("scalars.m64"), _register(REGISTER), _masked(kind, 15)),
        _do("register_write", _register(REGISTER), _masked(m8, 31), _op("+", m64, _field("first.d"))),
        _do("register_write", _register(NARROW), _masked(kind, 15), m16),
        _do("count", {"type": "counter_array", "value": COUNTER}, _masked(kind, 31)),
    ]
    pick = [
        _do(
            "modify_field_with_hash_based_offset",
            _field("scalars.m32"),
            _data(0),
            {"type": "calculation", "value": "crc"},
            _constant(1000),
        ),
        _do("register_read", _field("scalars.m12"), _register(NARROW), _masked(kind, 7)),
        _do("modify_field_rng_uniform", _field("scalars.m16"), kind, _field("first.b")),
        _assign("standard_metadata.priority", _masked(_data(0), 7)),
    ]
    skip = [
        _assign("scalars.m64", _op("|", _field("first.d"), _op("<<", _field("first.c"), _constant(48)))),
        _assign("scalars.count", _op("~", None, _field("first.d"))),
        _do("count", {"type": "counter_array", "value": COUNTER}, _field("scalars.count")),
    ]
    leave = [_assign("standard_metadata.egress_spec", _constant(5))]
    dump = [
        _do("add_header", _header("dump")),
        *(_assign(f"dump.{name}", _field(f"scalars.{name}")) for name in METADATA),
        *(_assign(f"dump.{name}", _field(f"standard_metadata.{name}")) for name in ("checksum_error", "parser_error")),
    ]
    drop = [_do("mark_to_drop", _header("standard_metadata"))]
    bodies: list[tuple[str, list[int], list[Json]]] = [
        (COMPUTE, [8, 16], compute),
        (PICK, [16], pick),
        (SKIP, [], skip),
        ("leave", [], leave),
        ("dump", [], dump),
        ("drop", [], drop),
        ("divide", [], [_assign("scalars.m32", _op("/", _field("scalars.m64"), _field("scalars.m8")))]),
    ]
    return [
        {
            "name": name,
            "id": number,
            "runtime_data": [{"name": f"p{n}", "bitwidth": bits} for n, bits in enumerate(widths)],
            "primitives": body,
        }
        for number, (name, widths, body) in enumerate(bodies)
    ]


def _register(name: str) -> Json:
    return {"type": "register_array", "value": name}


def _table(name: str, actions: dict[int, str], following: dict[str, str | None], **more: Any) -> Json:
    return {
        "name": name,
        "key": [],
        "match_type": "exact",
        "type": "simple",
        "max_size": 1024,
        "with_counters": False,
        "support_timeout": False,
        "direct_meters": None,
        "action_ids": list(actions),
        "actions": list(actions.values()),
        "base_default_next": None,
        "next_tables": following,
        **more,
    }


def _key(**fields: str) -> list[Json]:
    return [
        {"match_type": kind, "name": name, "target": name.replace("__", ".").split("."), "mask": MASKS.get(name)}
        for name, kind in fields.items()
    ]


def keyless(name: str, action: int, action_name: str, following: str | None) -> Json:
    """A table without a key whose one action is constant, as p4c makes of statements."""
    default = {"action_id": action, "action_const": True, "action_data": []}
    return _table(
        name, {action: action_name}, {action_name: following}, base_default_next=following, default_entry=default
    )


def _ingress() -> Json:
    actions = {0: COMPUTE, 1: PICK, 2: SKIP}
    ternary = _table(
        TERNARY,
        actions,
        {COMPUTE: MIXED, PICK: "leave", SKIP: MIXED},
        key=_key(first__kind="ternary", first__a="optional", first__c="exact", scalars__m8="lpm"),
        match_type="ternary",
        with_counters=True,
        base_default_next=MIXED,
    )
    mixed = _table(
        MIXED,
        actions,
        {"__HIT__": "leave", "__MISS__": "maybe"},
        key=_key(first__c="exact", first__d="exact", scalars__m64="exact", scalars__m32="lpm"),
        match_type="lpm",
        type="indirect",
        action_profile=PROFILE,
        with_counters=True,
        base_default_next="maybe",
    )
    return {
        "name": "ingress",
        "init_table": "parsed",
        "tables": [
            ternary,
            mixed,
            keyless("leave", 3, "leave", None),
            keyless("drop", 5, "drop", None),
        ],
        "action_profiles": [{"name": PROFILE, "id": 0, "max_size": 16}],
        "conditionals": [
            {"name": "parsed", "expression": _valid("first"), "true_next": TERNARY, "false_next": "leave"},
            {
                "name": "maybe",
                "expression": _op("not", None, _op("d2b", None, _field("scalars.one"))),
                "true_next": "leave",
                "false_next": "drop",
            },
        ],
    }


def _egress() -> Json:
    odd = _op("==", _masked(_field("scalars.m16"), 7), _constant(7))
    return {
        "name": "egress",
        "init_table": "odd",
        "tables": [keyless("dump", 4, "dump", None), keyless("drop_late", 5, "drop", None)],
        "action_profiles": [],
        "conditionals": [{"name": "odd", "expression": odd, "true_next": "drop_late", "false_next": "divide"}],
        "action_calls": [{"name": "divide", "id": 0, "action_id": 6, "next_node": "dump"}],
    }
