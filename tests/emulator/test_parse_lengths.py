"""How many bytes of a packet a parser may read: those of the longest way through its states."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.compiler.extractions import longest_parse_bytes
from emulator.compiler.layout import Layout, UnsupportedError
from emulator.engine.state import OCTETS
from tests.emulator.programs import Json, trainyard_json

_HEADERS = {
    header["name"]: sum(bits for _, bits, _ in kind["fields"]) // 8
    for header in trainyard_json()["headers"]
    for kind in trainyard_json()["header_types"]
    if kind["name"] == header["header_type"] and not header["metadata"]
}


def _state(number: int, headers: list[str], following: list[int | None]) -> Json:
    extracts = [{"op": "extract", "parameters": [{"type": "regular", "value": name}]} for name in headers]
    names = [None if each is None else f"state{each}" for each in following]
    transitions = [
        {"type": "hexstr", "value": hex(value), "mask": None, "next_state": name} for value, name in enumerate(names)
    ]
    return {"name": f"state{number}", "id": number, "parser_ops": extracts, "transitions": transitions}


def _program(states: list[Json]) -> Json:
    program = deepcopy(trainyard_json())
    key = [{"type": "field", "value": ["standard_metadata", "ingress_port"]}]
    parse_states = [state | {"transition_key": key} for state in states]
    program["parsers"][0] |= {"init_state": "state0", "parse_states": parse_states}
    return program


def _found(program: Json) -> int:
    return longest_parse_bytes(program, Layout(program))


@st.composite
def _parsers(draw: st.DrawFn) -> list[tuple[list[str], list[int | None]]]:
    """Headers that each state extracts, and the states that may follow it: later ones, so that there is no loop."""
    count = draw(st.integers(1, 6))
    return [
        (
            draw(st.lists(st.sampled_from(sorted(_HEADERS)), max_size=2)),
            draw(st.lists(st.sampled_from([None, *range(number + 1, count)]), max_size=3)),
        )
        for number in range(count)
    ]


@given(_parsers())
def test_the_longest_way_counts(parser: list[tuple[list[str], list[int | None]]]) -> None:
    def longest(number: int | None) -> int:
        if number is None:
            return 0
        headers, following = parser[number]
        return sum(_HEADERS[name] for name in headers) + max(map(longest, following), default=0)

    program = _program([_state(number, *each) for number, each in enumerate(parser)])
    expected = longest(0)
    if expected > OCTETS:
        with pytest.raises(UnsupportedError, match=f"a parser that reads {expected} bytes"):
            _found(program)
    else:
        assert _found(program) == expected


def test_as_many_ways_as_a_hundred_states_have_are_not_walked_one_by_one() -> None:
    """2^99 ways lead from the first state to the last one."""
    states = [_state(number, [], [number + 1, number + 1]) for number in range(99)]
    last = _state(99, [next(iter(_HEADERS))], [None])
    assert _found(_program([*states, last])) == next(iter(_HEADERS.values()))


def test_a_parser_with_a_loop_may_read_all_that_a_packet_stores() -> None:
    header = next(iter(_HEADERS))
    assert _found(_program([_state(0, [header], [1, None]), _state(1, [], [0])])) == OCTETS
