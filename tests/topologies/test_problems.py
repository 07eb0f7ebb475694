"""How problems of a document are told: where they are, and what the things there are called."""

import pytest

from topologies.problems import OTHER_PLACE, Location, Problem, place

DOCUMENT = {
    "switches": [
        {"name": "t0", "ports": [{"number": 1}, {"name": "swp2", "number": 2}]},
        {"name": "two words: and more"},
        {"name": 7},
    ],
    "cables": [{"ends": ["h0:eth0", "t0:swp2"]}, {"ends": ["h0:eth0"]}, {"ends": [1, 2]}],
    "events": [{"at_s": 1, "link": ["t0", "t1"]}, {"at_s": 1, "host": "h0"}, {"at_s": 1, "controller": 0}],
    "hosts": ["h0"],
}


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ((), ""),
        (("switches",), "switches"),
        (("switches", 0), "switches[0] t0"),
        (("switches", 0, "ports", 1, "gbps"), "switches[0] t0, ports[1] swp2, gbps"),
        (("switches", 0, "ports", 0, "gbps"), "switches[0] t0, ports[0].gbps"),
        (("switches", 0, "name"), "switches[0].name"),
        (("switches", 1, "mac"), "switches[1] 'two words: and more', mac"),
        (("switches", 2, "mac"), "switches[2].mac"),
        (("switches", 9, "mac"), "switches[9].mac"),
        (("switches", "x", 0, "mac"), "switches.x[0].mac"),
        (("cables", 0, "gbps"), "cables[0] h0:eth0 to t0:swp2, gbps"),
        (("cables", 0, "ends", 1), "cables[0].ends[1]"),
        (("cables", 1, "gbps"), "cables[1].gbps"),
        (("cables", 2, "gbps"), "cables[2].gbps"),
        (("events", 0, "at_s"), "events[0] t0 to t1, at_s"),
        (("events", 1, "at_s"), "events[1] h0, at_s"),
        (("events", 2, "at_s"), "events[2].at_s"),
        (("hosts", 0), "hosts[0]"),
    ],
)
def test_members_of_lists_have_their_names_beside_their_positions(location: Location, shown: str) -> None:
    assert place(location, DOCUMENT) == shown


def test_both_places_of_a_problem_are_named() -> None:
    problem = Problem(("cables", 1), f"expected a port that {OTHER_PLACE} has not taken", "x:1", ("cables", 0))
    assert (
        problem.text_in(DOCUMENT)
        == "cables[1]: expected a port that cables[0] h0:eth0 to t0:swp2 has not taken, got 'x:1'"
    )
    assert str(problem) == "cables[1]: expected a port that cables[0] has not taken, got 'x:1'"
