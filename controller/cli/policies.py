"""``trainyard policies``."""

from collections.abc import Mapping

from controller.policy.policy_name import PolicyName

DESCRIPTIONS: Mapping[PolicyName, str] = {
    PolicyName.ECMP: "no scheduling: the fabric's hash chooses every path, all flows share one level",
    PolicyName.CRUX: "Crux: paths, priorities and levels by GPU intensity",
    PolicyName.CRUX_PA: "Crux without its paths: priorities and levels on the paths of the fabric's hash",
}
"""What every policy does, in one line."""


def policies() -> None:
    """List the policies, one a line."""
    width = max(len(name) for name in DESCRIPTIONS)
    for name, description in DESCRIPTIONS.items():
        print(f"{name:{width}}  {description}")
