import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.frames import FrameError
from runtime.transport.deliveries import CONFIRMED_EVERY, Name, Sent, Taken


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 7), st.lists(st.integers(0, 400), unique=True))
def test_what_never_came_is_lost_and_nothing_else(number: int, came: int, told: int, unreadable: list[int]) -> None:
    """A connection ends at any time: pieces, words of their arrival and requests to send again may be on their way."""
    names: list[Name] = [(each, 0, 0, 0) for each in range(number)]
    came = min(came, number)
    sent, taken, words = Sent(), Taken(), []
    for name in names:
        sent.add(name)
    for name in names[:came]:
        if taken.take(name, is_read=name[0] not in unreadable):
            words.append(taken.number)
    assert words == list(range(CONFIRMED_EVERY, came + 1, CONFIRMED_EVERY))
    arrived = words[: min(told, len(words))]
    for word in arrived:
        sent.confirm(word)
    again = [name for name in names[: arrived[-1] if arrived else 0] if name[0] in unreadable]
    for name in again:  # the words that they are unreadable came before that of their arrival
        sent.add(name)
    read = {name for name in names[:came] if name[0] not in unreadable}
    assert taken.lost(sent.first, sent.names) == [
        *[name for name in names[sent.first :] if name not in read],
        *again,
    ]
    assert len(sent.names) <= number - sent.first + len(again)


def test_what_is_sent_again_is_not_lost() -> None:
    taken = Taken()
    taken.take((7, 0, 0, 0), is_read=False)
    assert taken.lost(0, [(7, 0, 0, 0)]) == [(7, 0, 0, 0)]
    assert taken.lost(0, [(7, 0, 0, 0), (7, 0, 0, 0)]) == [(7, 0, 0, 0)]
    taken.take((7, 0, 0, 0))
    assert taken.lost(0, [(7, 0, 0, 0), (7, 0, 0, 0), (8, 0, 0, 0)]) == [(8, 0, 0, 0)]


@pytest.mark.parametrize("number", [-1, 1, 5])
def test_numbers_of_what_was_not_sent_are_refused(number: int) -> None:
    sent = Sent()
    for each in range(4):
        sent.add((each, 0, 0, 0))
    sent.confirm(2)
    with pytest.raises(FrameError, match=f"{number} pieces have arrived, of 4"):
        sent.confirm(number)
