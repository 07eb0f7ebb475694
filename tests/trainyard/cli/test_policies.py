from policies.registry import policy_names
from tests.trainyard.cli.conftest import Trainyard


def test_every_policy_has_its_line(trainyard: Trainyard) -> None:
    result = trainyard("policies")
    assert result.exit_code == 0
    lines = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
    assert {name for name, _ in lines} == set(policy_names())
    assert len(lines) == len(policy_names())
