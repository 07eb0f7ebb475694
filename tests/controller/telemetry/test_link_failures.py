"""Links that hosts miss: who has to agree, what is no loss, and how soon it is seen."""

from itertools import count

import pytest

from controller.telemetry.path_table import REPORTS_TO_CONFIRM
from controller.telemetry.probe_loss import ProbeLossTracker
from hostlib.telemetry.prober import CONFIRMATIONS
from tests.controller.telemetry.hosts import PORTS, TO_ONE, TO_OTHER, Hosts, senders_to
from tests.controller.telemetry.reports import samples


def test_a_link_that_all_hosts_miss_is_silent_after_two_rounds() -> None:
    hosts = Hosts(TO_ONE, TO_OTHER)
    for number, now_s in ((0, 2.0), (1, 2.0), (0, 3.0)):
        hosts.round(number, now_s, lost=1)
        assert hosts.failures.silent_links == frozenset()
    hosts.round(1, 3.0, lost=1)
    # Nothing tells the two links apart which the same probes cross; those to the hosts are crossed by others too.
    assert hosts.failures.silent_links == {1, 2}


def test_what_one_host_says_against_others_counts_for_nothing() -> None:
    hosts = Hosts(TO_ONE, TO_OTHER)
    for second in range(2, 20):
        hosts.round(0, float(second), lost=1)
        hosts.round(1, float(second))
    assert hosts.failures.silent_links == frozenset()


def test_what_one_host_alone_can_see_it_may_say() -> None:
    hosts = Hosts(TO_ONE)
    hosts.round(0, 2.0, lost=1)
    assert hosts.failures.silent_links == frozenset()
    hosts.round(0, 3.0, lost=1)
    assert hosts.failures.silent_links == {1, 2}


def test_a_probe_that_is_lost_now_and_then_says_nothing() -> None:
    hosts = Hosts(TO_ONE)
    for second in range(2, 20):
        hosts.round(0, float(second), lost=1 if second % 2 else None)
    assert hosts.failures.silent_links == frozenset()


def test_ports_that_lead_elsewhere_are_missed_but_where_the_fabric_was_rerouted() -> None:
    """A switch whose port has died hashes its flows over the others: nothing is lost, and the link is."""
    for is_rerouted in (False, True):
        hosts = Hosts(TO_ONE)
        if is_rerouted:
            hosts.pairs[0].reroute(frozenset())
        for number in range(REPORTS_TO_CONFIRM - 1):
            hosts.round(0, 2.0 + number, ways=dict.fromkeys(PORTS, 1))
        assert hosts.failures.silent_links == (frozenset() if is_rerouted else {1, 2})


def test_a_link_by_which_other_ports_lead_now_is_not_silent() -> None:
    """All ports of a group that has lost a member are hashed anew: each link is missed by those that it had."""
    hosts = Hosts(TO_ONE, TO_OTHER)
    for second in range(2, 5):
        for number in range(2):
            hosts.round(number, float(second), ways={port: 1 - way for port, way in PORTS.items()})
    assert hosts.failures.silent_links == frozenset()


def test_a_sender_or_a_reporter_that_is_gone_makes_nothing_silent() -> None:
    hosts = Hosts(TO_ONE, TO_OTHER)
    for second in range(2, 20):
        hosts.failures.update(hosts.pairs, float(second))
    assert hosts.failures.silent_links == frozenset()


def test_reports_that_were_lost_are_no_probes_that_were() -> None:
    hosts = Hosts(TO_ONE)
    hosts.round(0, 2.0, lost=1)
    hosts.pairs[0].reset_loss(2.5)
    hosts.round(0, 3.0, lost=1)
    assert hosts.failures.silent_links == frozenset()


def test_a_round_after_reports_that_were_lost_is_the_first_one() -> None:
    hosts, of_flows = Hosts(TO_ONE), dict.fromkeys(range(60_000, 60_004), 0)
    hosts.pairs[0].keep_ports(of_flows.keys())
    for now_s in (1.1, 1.2, 1.3, 1.4):
        hosts.round(0, now_s, ways=of_flows | PORTS)
    hosts.round(0, 2.0, lost=1, ways=of_flows | PORTS)
    hosts.pairs[0].reset_loss(2.5)
    hosts.round(0, 3.0, lost=1, ways=of_flows | PORTS)
    assert hosts.failures.silent_links == frozenset()


def test_a_link_is_not_heard_again_because_reports_were_lost() -> None:
    hosts = Hosts(TO_ONE)
    for now_s in (2.0, 3.0):
        hosts.round(0, now_s, lost=1)
    hosts.pairs[0].reset_loss(3.5)
    hosts.failures.update(hosts.pairs, 3.5)
    assert hosts.failures.silent_links == {1, 2}
    hosts.round(0, 4.0)
    assert hosts.failures.silent_links == frozenset()


@pytest.mark.parametrize("known_dead", [False, True])
def test_a_link_that_is_known_to_be_dead_explains_what_is_missed(known_dead: bool) -> None:
    hosts = Hosts(TO_ONE, TO_OTHER)
    if known_dead:
        for pair in hosts.pairs:
            pair.reroute(frozenset({1}))
    for second in range(2, 10):
        for number in range(2):
            hosts.round(number, float(second), lost=1)
    assert hosts.failures.silent_links == (frozenset() if known_dead else {1, 2})


def test_a_link_is_silent_until_a_port_leads_over_it_again_or_nobody_could_see_it() -> None:
    for is_watched in (True, False):
        hosts = Hosts(TO_ONE)
        for second in range(2, 6):
            hosts.round(0, float(second), lost=1)
        assert hosts.failures.silent_links == {1, 2}
        hosts.pairs[0].reroute(frozenset({1, 2}))
        hosts.pairs[0].reroute(frozenset())  # it is tried again
        assert hosts.failures.silent_links == {1, 2}
        if is_watched:
            for number in range(REPORTS_TO_CONFIRM):
                hosts.round(0, 6.0 + number)
        else:
            hosts.failures.remove_pair(hosts.pairs[0])
        assert hosts.failures.silent_links == frozenset()


def test_rounds_are_in_the_order_in_which_probes_were_sent() -> None:
    tracker, confirming = ProbeLossTracker(), CONFIRMATIONS
    for port in (3, 1, 2):
        assert not tracker.record_round(port, confirming, number=port)
    for port in (1, 2, 3):
        assert not tracker.record_round(port, confirming + 1, number=3 + port)
    # One that was overtaken was passed over, and passes nobody over itself.
    for port, passed_over in ((2, [1]), (1, []), (3, [])):
        assert list(tracker.record_round(port, confirming + 2, number=6 + port)) == passed_over
    assert not tracker.record_round(1, confirming + 3, number=10)
    assert list(tracker.record_round(3, confirming + 3, number=12)) == [2]


def test_a_port_that_changes_its_place_is_missed_in_that_round_at_most() -> None:
    tracker, numbers = ProbeLossTracker(), count()
    for port_sequence in range(CONFIRMATIONS + 3):
        for port in (1, 2, 3):
            assert not tracker.record_round(port, port_sequence, next(numbers))
    missed = [
        list(tracker.record_round(port, CONFIRMATIONS + 3 + turn, next(numbers)))
        for turn in range(4)
        for port in (1, 3, 2)
    ]
    assert missed == [[], [2], []] + [[]] * 9


def test_a_new_port_is_missed_from_its_second_round_on() -> None:
    """Its first probes come out of the round, so what came before them and not since says nothing."""
    tracker, numbers = ProbeLossTracker(), count()
    for port_sequence in range(CONFIRMATIONS + 3):
        assert not tracker.record_round(1, port_sequence, next(numbers))
    for port_sequence in range(CONFIRMATIONS + 2):
        assert not tracker.record_round(2, port_sequence, next(numbers))
    assert list(tracker.record_round(2, CONFIRMATIONS + 2, next(numbers))) == [1]


def test_hosts_that_probe_their_ports_in_another_order_miss_no_link() -> None:
    hosts = Hosts(TO_ONE)
    for second in range(2, 10):
        for turn, port in enumerate(sorted(PORTS, reverse=True)):
            hosts.round(0, second + 0.1 * turn, ways={port: PORTS[port]})
            assert hosts.failures.silent_links == frozenset()


@pytest.mark.parametrize("claimants", ["", "d", "cd"])
def test_a_host_that_claims_to_hear_what_several_miss_is_overruled(claimants: str) -> None:
    hosts = senders_to("abcd", "s", "o")
    for second in range(2, 10):
        for number, host in enumerate("abcd" * 2):
            hosts.round(number, float(second), lost=100 if number < 4 and host not in claimants else None)
        is_silent = {"": second > 2, "d": second > 6, "cd": False}[claimants]
        assert hosts.failures.silent_links == ({100} if is_silent else frozenset())
        assert hosts.failures.overruled == ({100: {"d"}} if claimants and is_silent else {})


def test_a_link_works_again_when_hosts_that_are_not_overruled_hear_it() -> None:
    hosts = senders_to("abcd", "s")
    hosts.failures.overruled, hosts.failures.silent_links = {100: frozenset("d")}, frozenset({100})
    for pair in hosts.pairs:
        pair.reroute(frozenset({100}))
    hosts.round(3, 2.0)
    assert hosts.failures.silent_links == {100}  # nothing is routed over it
    for pair in hosts.pairs:
        pair.reroute(frozenset())
    for second in range(3, 3 + REPORTS_TO_CONFIRM):
        hosts.round(3, float(second))
    assert hosts.failures.silent_links == {100}
    for second in range(3, 3 + REPORTS_TO_CONFIRM):
        hosts.round(0, float(second))
    assert (hosts.failures.silent_links, hosts.failures.overruled) == (frozenset(), {})


def test_what_one_sender_leaves_out_moves_only_its_own() -> None:
    """All whom it sends to miss it, by a link that another sender's probes cross and are heard by."""
    hosts = Hosts(
        *(((0, 1, 10 + host), (0, 2, 10 + host)) for host in range(5)),
        ends=(("s", "a"), ("s", "b"), ("s", "c"), ("s", "d"), ("q", "d")),
    )
    for second in range(2, 10):
        for number in range(5):
            hosts.round(number, float(second), lost=1 if number < 3 else None)
    assert hosts.failures.silent_links == frozenset()
    hosts.failures.remove_pair(hosts.pairs[4])
    for second in range(10, 14):
        for number in range(4):
            hosts.round(number, float(second), lost=1 if number < 3 else None)
    assert hosts.failures.silent_links == {1}


def test_what_other_silent_links_explain_overrules_nobody() -> None:
    """Three links behind the one that all of them follow: each is missed by all whose probes cross it."""
    hosts = Hosts(*(((0, 1, 10 + host), (0, 2, 20 + host)) for host in range(4)))
    for second in range(2, 10):
        for number in range(4):
            hosts.round(number, float(second), lost=10 + number if number < 3 else None)
    assert hosts.failures.silent_links == {10, 11, 12}


def test_claims_by_ports_that_nobody_keeps_are_claims_too() -> None:
    hosts = senders_to("abcd", "s", "o")
    for second in range(2, 10):
        for number, host in enumerate("abcd" * 2):
            hosts.round(number, float(second), lost=100 if number < 4 else None)
            if host == "d":
                hosts.measurements.record(samples((0, 100, 3), float(second), window_bytes=0), "d")
    assert hosts.failures.overruled == {100: {"d"}}
