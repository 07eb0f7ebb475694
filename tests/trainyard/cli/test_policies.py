from policies import find_policy, policy_names
from tests.trainyard.cli.conftest import Trainyard


def test_every_policy_has_its_line_with_where_it_comes_from_and_what_it_does(trainyard: Trainyard) -> None:
    result = trainyard("policies")
    assert result.exit_code == 0
    lines = [line.split(maxsplit=3) for line in result.stdout.splitlines()]
    assert [name for name, *_ in lines] == list(policy_names())
    assert {distribution for _, distribution, *_ in lines} == {"trainyard"}
    assert [summary for *_, summary in lines] == [find_policy(name).summary for name in policy_names()]
