"""The status of a switch, whatever protocol it speaks."""

from typing import Any

from controller.southbound.reachability import Reachability
from controller.southbound.southbound import SwitchStatus
from controller.southbound.switch_writer import SwitchWriter
from controller.switch_addresses import SwitchAddress


def status_of(
    address: SwitchAddress, writer: SwitchWriter[Any], reachability: Reachability, problem: str = ""
) -> SwitchStatus:
    """Return the status of a switch; ``problem`` is told where nothing else is wrong."""
    return SwitchStatus(
        address.name,
        address.place,
        address.device,
        writer.condition,
        writer.problem or reachability.reason(address.name) or problem,
        writer.num_rules,
        reachability.changed_ago_s(address.name),
        writer.num_drifted,
    )
