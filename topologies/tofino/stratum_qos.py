"""The queues of a Tofino as ``vendor_config`` of Stratum's chassis configuration, in protobuf's text format.

Messages and fields are those of ``TofinoConfig`` in ``stratum/hal/lib/common/common.proto``, and what they do follows
``stratum/hal/lib/barefoot/bf_sde_wrapper.cc``, both of github.com/stratum/stratum. Three of its habits matter here. A
pool's size and its limit for green packets are one number in the chip, so all limits are given. Priorities are set for
guaranteed and for remaining bandwidth at once. Queues may name the SDK's port; port shaping may not.
"""

from collections.abc import Iterable

from topologies.fabric import Fabric
from topologies.printable import printable
from topologies.sonic_qos import LEVELS
from topologies.tofino.buffers import (
    BUFFER_CELLS,
    BURST_BYTES,
    EGRESS_POOL_CELLS,
    HYSTERESIS_CELLS,
    INGRESS_POOL_CELLS,
    PORT_GUARANTEED_CELLS,
    PORT_SHARE_CELLS,
    QUEUE_GUARANTEED_CELLS,
    QUEUE_SHARE_CELLS,
)
from topologies.tofino.ports import TofinoPort, tofino_ports

_ALL_COS = 0xFF
_LARGEST_WEIGHT = 1023


def stratum_qos(fabric: Fabric, switch: str) -> str:
    """Return the part of a switch's chassis configuration, for its ports that have cables.

    A packet of level n waits in queue n. Queue 7 is served first.

    Raises:
        TofinoPortError: A cable needs a port that Tofino does not have.
    """
    ports = tofino_ports(fabric, switch)
    node = fabric.identity[switch].device_id
    shaped = [port for port in ports if port.shaped_bps is not None]
    comments = [
        f"# {printable(switch)}: eight queues in strict priority at every port with a cable; 7 is served first.",
        "# Queue n has level n. All data shares one pool of buffers. The switch pauses nobody; full queues drop.",
        "# Add this to the chassis configuration. ECN is not here: its thresholds are the pipeline's table ecn.",
    ]
    config = []
    if shaped:
        comments += [
            "# Port shaping names ports by the ids of singleton_ports. For the ports below these ids have to be the",
            "# numbers that P4Runtime knows, which are the SDK's.",
        ]
        config += _entry("node_id_to_port_shaping_config", node, (line for port in shaped for line in _shaping(port)))
    config += _entry("node_id_to_qos_config", node, _qos(ports))
    return "\n".join((*comments, *_block("vendor_config", _block("tofino_config", config)), ""))


def _qos(ports: Iterable[TofinoPort]) -> list[str]:
    lines = [*_pool("INGRESS_APP_POOL_0", INGRESS_POOL_CELLS), *_pool("EGRESS_APP_POOL_0", EGRESS_POOL_CELLS)]
    for port in ports:
        lines += [f"# {printable(port.name)}", *_incoming(port), *_queues(port)]
    return lines


def _pool(pool: str, cells: int) -> list[str]:
    limits = [f"color_drop_limit_{colour}: {cells}" for colour in ("green", "yellow", "red")]
    return _block("pool_configs", [f"pool: {pool}", f"pool_size: {cells}", "enable_color_drop: true", *limits])


def _incoming(port: TofinoPort) -> list[str]:
    """The port's default priority group, which has all classes: no class is paused, and none has a part of its own."""
    return _block(
        "ppg_configs",
        [
            f"sdk_port: {port.number}",
            "is_default_ppg: true",
            f"minimum_guaranteed_cells: {PORT_GUARANTEED_CELLS}",
            "pool: INGRESS_APP_POOL_0",
            f"base_use_limit: {PORT_SHARE_CELLS}",
            "baf: BAF_80_PERCENT",
            f"hysteresis: {HYSTERESIS_CELLS}",
            f"ingress_drop_limit: {BUFFER_CELLS}",
            f"icos_bitmap: {_ALL_COS:#x}",
        ],
    )


def _queues(port: TofinoPort) -> list[str]:
    mappings = (
        f"queue_mapping {{ queue_id: {level} priority: PRIO_{level} weight: {_LARGEST_WEIGHT} "
        f"minimum_guaranteed_cells: {QUEUE_GUARANTEED_CELLS} pool: EGRESS_APP_POOL_0 "
        f"base_use_limit: {QUEUE_SHARE_CELLS} baf: BAF_80_PERCENT hysteresis: {HYSTERESIS_CELLS} }}"
        for level in range(LEVELS)
    )
    return _block("queue_configs", [f"sdk_port: {port.number}", *mappings])


def _shaping(port: TofinoPort) -> list[str]:
    shape = _block("byte_shaping", [f"rate_bps: {port.shaped_bps}", f"burst_bytes: {BURST_BYTES}"])
    return _entry("per_port_shaping_configs", port.number, shape)


def _entry(field: str, key: int, value: Iterable[str]) -> list[str]:
    """Return an entry of a map."""
    return _block(field, [f"key: {key}", *_block("value", value)])


def _block(field: str, lines: Iterable[str]) -> list[str]:
    return [f"{field} {{", *(f"  {line}" for line in lines), "}"]
