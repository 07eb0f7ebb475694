"""The time that a program's meters go by: a hidden metadata field that is written where a packet comes and leaves."""

from emulator.compiler.expressions import word
from emulator.compiler.layout import Json, Layout

HIDDEN = "$clock"
_NOW = [HIDDEN, "now_us"]


def with_clock(program: Json) -> Json:
    """The program with the field, if it has meters."""
    if not program.get("meter_arrays"):
        return program
    return {
        **program,
        "header_types": [*program["header_types"], {"name": HIDDEN, "fields": [[_NOW[1], 64, False]]}],
        "headers": [*program["headers"], {"name": HIDDEN, "header_type": HIDDEN, "metadata": True}],
    }


def set_clock(layout: Layout) -> list[str]:
    """Lines that write the field, where there is one."""
    return [f"{now_source(layout)} = U(now_us)"] if HIDDEN in layout.headers else []


def now_source(layout: Layout) -> str:
    """Source of the time in microseconds."""
    return word(layout.field(_NOW).word)
