"""Text of others is one bounded line that no terminal takes for a command."""

from hypothesis import given
from hypothesis import strategies as st

from topologies.printable import printable, quoted


def test_plain_text_stays() -> None:
    assert printable("table 'flow' is full: é, 漢") == "table 'flow' is full: é, 漢"


def test_control_characters_and_line_ends_are_escaped() -> None:
    assert printable("\x1b[2Jgone\r\nnext\x9b\u202e") == r"\x1b[2Jgone\r\nnext\x9b\u202e"


def test_a_lone_surrogate_can_be_encoded_afterwards() -> None:
    assert printable("\udcff").encode() == rb"\udcff"


def test_long_text_is_cut_and_says_how_long_it_was() -> None:
    cut = printable("x" * 100_000)
    assert len(cut) == 500
    assert cut.endswith("x… (100,000 characters)")


@given(st.text(st.characters(), max_size=80), st.integers(min_value=1, max_value=60))
def test_the_result_is_printable_and_never_longer_than_the_limit(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert shown.isprintable()
    assert len(shown) <= limit


def test_names_are_quoted_whole_and_others_cut() -> None:
    assert quoted("gpt\x1b") == r"'gpt\x1b'"
    assert quoted("j" * 256) == repr("j" * 256)
    assert quoted("j" * 100_000) == f"{'j' * 256!r}… (100,000 characters)"
