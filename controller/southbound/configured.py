"""Make the southbound of a configuration's switches, whatever protocols they speak."""

from controller.config import ControllerConfig
from controller.southbound.connection import OnChange, nothing_waits
from controller.southbound.fabric_southbound import FabricSouthbound
from controller.southbound.fencing import Grant, TakeoverBarrier
from controller.southbound.mixed import MixedSouthbound
from controller.southbound.openflow.switches import OpenFlowSouthbound
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.southbound.write_outcomes import OnWrite
from topologies.routing import Routing


def southbound_of(
    config: ControllerConfig,
    routing: Routing,
    on_write: OnWrite | None,
    grant: Grant | None,
    read_back_s: float | None,
    on_change: OnChange = nothing_waits,
) -> FabricSouthbound:
    """Return the southbound of a configuration: that of the one protocol that all switches speak, or of both.

    Args:
        config: The configuration.
        routing: The routing of its fabric.
        on_write: Called after every request to a switch.
        grant: Permission to write to switches; None: always granted.
        read_back_s: How often switches are read back; None: never.
        on_change: Called where the condition of a switch may be another one.
    """
    barrier = TakeoverBarrier(address.name for address in config.switch_addresses)
    speaking, others = config.openflow_addresses, config.p4runtime_addresses
    openflow = p4runtime = None
    if speaking:
        openflow = OpenFlowSouthbound(
            speaking, routing, config.openflow, on_write, grant, read_back_s, barrier, on_change, config.election_id
        )
    if others or openflow is None:
        p4runtime = P4RuntimeSouthbound(
            others,
            routing,
            config.pipeline,
            config.election_id,
            on_write=on_write,
            grant=grant,
            read_back_s=read_back_s,
            tls=config.switch_tls,
            base_routing=config.base_routing,
            barrier=barrier,
            on_change=on_change,
            device_config=config.device_config,
        )
    if openflow is None:
        assert p4runtime is not None, "there is one of both"
        return p4runtime
    return openflow if p4runtime is None else MixedSouthbound(p4runtime, openflow)
