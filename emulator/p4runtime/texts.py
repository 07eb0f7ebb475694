"""Texts in place of numbers: types that the program translates for its controllers (``sdn_string``).

A text that is a number in decimal is that number, and the empty one is 0. Any other one gets the highest number that is
free, for as long as the pipeline lives. Types of up to nine bits, such as ports, have texts in decimal alone, because
programs give their numbers a meaning.
"""

from emulator.p4runtime.errors import invalid_argument, resource_exhausted

MOST_TEXTS = 1 << 16
"""Texts of one type that are not in decimal."""
LONGEST_TEXT = 1 << 10
_PORT_BITS = 9


class Texts:
    """The texts of one type, for all switches of a fabric."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._texts: dict[int, bytes] = {}
        self._free = 1 << 4096

    def number(self, text: bytes, width_bits: int, where: str) -> int:
        """Return the number of a text.

        Raises RequestError: INVALID_ARGUMENT for a text that is too long, is not UTF-8, or whose number belongs to
        another one, RESOURCE_EXHAUSTED where there are too many.
        """
        if text in self._numbers:
            return self._numbers[text]
        number = self._meant(text, width_bits, where)
        if number in self._texts:
            other = self._texts[number].decode()
            raise invalid_argument(f"{where}: the number of {text.decode()!r} belongs to {other!r}")
        self._numbers[text], self._texts[number] = number, text
        return number

    def text(self, number: int) -> bytes:
        """Return the text of a number; that in decimal if no controller has given it one."""
        return self._texts.get(number, str(number).encode())

    def _meant(self, text: bytes, width_bits: int, where: str) -> int:
        try:
            decoded = text.decode()
        except UnicodeDecodeError:
            raise invalid_argument(f"{where}: the text is not UTF-8") from None
        if len(text) > LONGEST_TEXT:
            raise invalid_argument(f"{where}: a text has at most {LONGEST_TEXT} bytes, not {len(text)}")
        if not decoded:
            return 0
        in_decimal = decoded.isascii() and decoded.isdigit() and (decoded == "0" or decoded[0] != "0")
        if in_decimal and int(decoded) < 1 << width_bits:
            return int(decoded)
        if width_bits <= _PORT_BITS:
            raise invalid_argument(f"{where}: {decoded!r} is not a number of {width_bits} bits in decimal")
        if len(self._numbers) >= min(MOST_TEXTS, (1 << width_bits) - 1):
            raise resource_exhausted(f"{where}: there are too many texts")
        self._free = min(self._free, (1 << width_bits) - 1)
        while self._free in self._texts:
            self._free -= 1
        return self._free
