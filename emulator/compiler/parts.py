"""Required and known top-level parts of a BMv2 JSON.

They are those of BMv2's format 2; p4c writes minor version 23 (docs/JSON_format.md of behavioral-model).
"""

from typing import Any

from emulator.compiler.layout import UnsupportedError

_MAJOR_VERSION = 2

_NEEDED = (
    "header_types",
    "headers",
    "errors",
    "parsers",
    "deparsers",
    "calculations",
    "checksums",
    "counter_arrays",
    "actions",
    "pipelines",
)
_OTHERS = (
    "__meta__",
    "enums",
    "extern_instances",
    "field_aliases",
    "field_lists",
    "force_arith",
    "header_stacks",
    "header_union_stacks",
    "header_union_types",
    "header_unions",
    "learn_lists",
    "meter_arrays",
    "parse_vsets",
    "program",
    "register_arrays",
)


class NotBmv2Error(ValueError):
    """The JSON is not a BMv2 program."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the program is not BMv2 JSON: {why}")


def check_parts(program: Any) -> None:
    """Raise NotBmv2Error for a missing part, UnsupportedError for an unknown one.

    An unknown part could change anything, so it is refused unless it is empty.
    """
    if not isinstance(program, dict):
        raise NotBmv2Error(f"it is a {type(program).__name__}")
    missing = [key for key in _NEEDED if key not in program]
    if missing:
        raise NotBmv2Error(f"it has no {', '.join(missing)}")
    for key in sorted(program.keys() - {*_NEEDED, *_OTHERS}):
        if program[key]:
            raise UnsupportedError(f"part {key!r} of a BMv2 JSON")
    major, *_ = program.get("__meta__", {}).get("version", [_MAJOR_VERSION])
    if major != _MAJOR_VERSION:
        raise UnsupportedError(f"version {major!r} of BMv2 JSON (known is {_MAJOR_VERSION})")
