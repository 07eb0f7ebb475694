"""``trainyard check``."""

from trainyard.cli.inputs import AllowPolicyImportOption, ScenarioArgument, read_scenario


def check(scenario: ScenarioArgument, allow_policy_import: AllowPolicyImportOption = False) -> None:
    """Say ok, or everything that is wrong with a scenario."""
    read_scenario(scenario, allow_policy_import=allow_policy_import)
    print("ok")
