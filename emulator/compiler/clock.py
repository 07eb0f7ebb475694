"""Time for a program's meters: a hidden metadata field that is set when a packet arrives and leaves."""

from emulator.compiler.expressions import word
from emulator.compiler.layout import Json, Layout

HIDDEN = "$clock"
_NOW = [HIDDEN, "now_us"]


def with_clock(program: Json) -> Json:
    """Return the program with the field, if it has meters."""
    if not program.get("meter_arrays"):
        return program
    return {
        **program,
        "header_types": [*program["header_types"], {"name": HIDDEN, "fields": [[_NOW[1], 64, False]]}],
        "headers": [*program["headers"], {"name": HIDDEN, "header_type": HIDDEN, "metadata": True}],
    }


def set_clock(layout: Layout) -> list[str]:
    """Return the lines that set the field, if it exists."""
    return [f"{now_source(layout)} = U(now_us)"] if HIDDEN in layout.headers else []


def now_source(layout: Layout) -> str:
    """Return an expression for the time in microseconds."""
    return word(layout.field(_NOW).word)
