"""``trainyard check`` and ``trainyard policies``: whether a scenario can be used, and which policies there are."""

from policies.registry import PolicyError, find_policy, registrations
from trainyard.cli.inputs import read_scenario
from trainyard.cli.options import AllowPolicyImportOption, ScenarioArgument


def check(scenario: ScenarioArgument, allow_policy_import: AllowPolicyImportOption = False) -> None:
    """Check a scenario and print ok, or everything that is wrong with it."""
    read_scenario(scenario, allow_policy_import=allow_policy_import)
    print("ok")


def policies() -> None:
    """List the registered policies: name, the distribution that each comes from, and what it does."""
    registered = registrations()
    names, sources = (
        max(map(len, column), default=0)
        for column in ([each.name for each in registered], [each.distribution for each in registered])
    )
    for each in registered:
        try:
            summary = find_policy(each.name).summary
        except PolicyError as error:
            summary = f"cannot be used: {error}"
        print(f"{each.name:{names}}  {each.distribution:{sources}}  {summary}")
