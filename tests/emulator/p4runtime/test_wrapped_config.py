"""Device configs inside BMv2's own message."""

from hypothesis import given
from hypothesis import strategies as st

from emulator.p4runtime.wrapped_config import unwrapped

_JSON = b'{"program": "' + b"x" * 300 + b'"}'
_LENGTH = bytes([0x80 | len(_JSON) & 0x7F, len(_JSON) >> 7])


def test_the_json_is_taken_out_of_the_message() -> None:
    assert unwrapped(b"\x1a" + _LENGTH + _JSON) == _JSON
    settings = b"\x12\x06\x0a\x04\x0a\x02ab"
    assert unwrapped(b"\x08\x01" + settings + b"\x1a" + _LENGTH + _JSON) == _JSON


def test_a_bare_json_is_left_as_it_is() -> None:
    assert unwrapped(_JSON) == _JSON
    assert unwrapped(b"\n " + _JSON) == b"\n " + _JSON


@given(st.binary(max_size=40))
def test_other_data_never_fail(data: bytes) -> None:
    assert unwrapped(data) in data


def test_a_message_that_is_cut_off_is_left_as_it_is() -> None:
    whole = b"\x08\x01\x1a" + _LENGTH + _JSON
    for end in (1, 3, 4, 10, len(whole) - 1):
        assert unwrapped(whole[:end]) == whole[:end]
