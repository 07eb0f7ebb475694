"""Random fail-overs, judged whenever they pause; ``make chaos`` has a hundred of them happen."""

from tests.chaos.fail_over import play

_FAIL_OVERS = 10


def test_no_two_controllers_write_at_once_and_nothing_is_lost() -> None:
    outcome = play(1, _FAIL_OVERS)
    assert outcome.num_terms > _FAIL_OVERS
    assert outcome.num_accepted > _FAIL_OVERS
