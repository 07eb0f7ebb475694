"""``trainyard check``."""

from trainyard.cli.inputs import ScenarioArgument, read_scenario


def check(scenario: ScenarioArgument) -> None:
    """Say ok, or everything that is wrong with a scenario."""
    read_scenario(scenario)
    print("ok")
