"""Values that programs tend not to expect."""

import math
from random import Random

NUMBERS = (
    *(0, -1, 1, 2, 7, 8, 255, 256, 65_535, 65_536, 49_152),
    *((1 << bits) + more for bits in (31, 32, 53, 63, 64, 128) for more in (-1, 0)),
    *(-(1 << 31), -(1 << 63), 10**30, 10**99),
)
FLOATS = (0.0, -0.0, -1.0, 0.5, 1.0, 5e-324, 1e-310, 1e-9, 1e9, 1e18, 1e308, math.inf, -math.inf, math.nan)
TEXTS = (
    *("", " ", "a", "h0", "h1", "t0", "crux", "true", "null", "~", "0", "-1", "1e999", ".nan", "*", "a/b", "a/b/0"),
    *("\x1b[2J\x1b]0;owned\a", "\r\nforged line", "\x9b31m", "\u202egnp", "\u2028", "a\0b", "\ufeff", "é" * 40),
    *("../../etc/passwd", "os:system", "127.0.0.1:1", "%s%n{0}", "[red]x[/red]", "=1+1", "k" * 5_000),
)
BYTES = (
    *(
        b"",
        b"\0",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\x1b[31m",
        b"\n",
        b"\r",
        b",",
        b'"',
        b":",
        b"- ",
        b"? ",
        b"&a ",
        b"*a",
    ),
    *(b"[" * 200, b"{" * 200, b"9" * 400, b"!!binary ", b"!!python/object:a ", b"<<: ", b"---\n", b"NaN", b"1e999"),
    *(b"5.0e-324", b"-1", b"18446744073709551616", b"\\ud800", b"\xef\xbb\xbf", b"#", b"k" * 3_000),
)


def value(draws: Random) -> object:
    """Draw a value of a document."""
    match draws.randrange(8):
        case 0 | 1:
            return draws.choice(NUMBERS)
        case 2 | 3:
            return draws.choice(FLOATS)
        case 4 | 5:
            return draws.choice(TEXTS)
        case 6:
            return draws.choice((None, True, False, [], {}))
    return draws.choice(([1, "a", None], {"a": 1}, [[[[]]]], {"kind": "star"}, ["h0"] * 50))
