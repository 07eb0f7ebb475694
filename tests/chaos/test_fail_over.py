"""Random fail-overs, checked at every pause; ``make chaos`` runs a hundred."""

from tests.chaos.fail_over import play

_FAIL_OVERS = 10


def test_no_two_controllers_write_at_once_and_nothing_is_lost() -> None:
    outcome = play(1, _FAIL_OVERS)
    assert outcome.num_terms > _FAIL_OVERS
    assert outcome.num_accepted > _FAIL_OVERS
