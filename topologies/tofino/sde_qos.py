"""The queues of a Tofino as a script for ``bfrt_python`` of Intel's SDE, which sets them by the tables of ``tf1.tm``.

Tables, fields and their choices are those of ``bf_rt_tm_tf1.json`` in ``pkgsrc/bf-drivers/src/bf_rt/bf_rt_tm`` of
github.com/p4lang/open-p4studio; ``docs/bf_rt_tm_tf1.dox`` beside it says what they do. Tables of queues are keyed by
the port group in a pipe and by the queue in that group. With eight queues for each of the four ports of a group, the
port at lane n has queues 8 n to 8 n + 7, and packets of queue id q wait in the q-th of them.
"""

from topologies.fabric import Fabric
from topologies.printable import printable
from topologies.sonic_qos import LEVELS
from topologies.tofino.buffers import (
    BURST_BYTES,
    EGRESS_POOL_CELLS,
    HYSTERESIS_CELLS,
    INGRESS_POOL_CELLS,
    PORT_GUARANTEED_CELLS,
    PORT_SHARE_CELLS,
    QUEUE_GUARANTEED_CELLS,
    QUEUE_SHARE_CELLS,
)
from topologies.tofino.ports import LANES_PER_GROUP, TofinoPort, tofino_ports

_HEAD = """\
# {switch}: eight queues in strict priority at every port with a cable; 7 is served first.
# Queue n has level n. All data shares one pool of buffers. The switch pauses nobody; full queues drop.
# Run this once the ports are there, and again whenever the driver has started:
#
#     $SDE/run_bfshell.sh -b FILE
#
# ECN is not here: its thresholds are the pipeline's table ecn.

tm = bfrt.tf1.tm

for pool, cells in (("IG_APP_POOL_0", {ingress_cells}), ("EG_APP_POOL_0", {egress_cells})):
    tm.pool.cfg.mod(pool=pool, size_cells=cells)
    tm.pool.app.mod_with_color_drop_enable(
        pool=pool, green_limit_cells=cells, yellow_limit_cells=cells, red_limit_cells=cells
    )
"""

_GROUPS = """\
for pipe, group in groups:
    tm.port.group.mod_with_seq(pipe=pipe, pg_id=group, port_queue_count=[{levels}] * {lanes})
"""

_PORTS = """\
for pipe, group, lane, port, shaped_kbps in ports:
    tm.port.flowcontrol.mod(dev_port=port, mode_tx="NONE")
    tm.port.dpg.mod(
        dev_port=port,
        guaranteed_cells={port_guaranteed_cells},
        hysteresis_cells={hysteresis_cells},
        pool_id="IG_APP_POOL_0",
        pool_max_cells={port_share_cells},
        dynamic_baf="80%",
    )
    if shaped_kbps is not None:
        tm.port.sched_shaping.mod(
            dev_port=port, unit="BPS", provisioning="LOWER", max_rate=shaped_kbps, max_burst_size={burst_bytes}
        )
    tm.port.sched_cfg.mod(dev_port=port, max_rate_enable=shaped_kbps is not None)
    for level in range({levels}):
        queue = lane * {levels} + level
        tm.queue.buffer.mod_with_shared_pool(
            pipe=pipe,
            pg_id=group,
            pg_queue=queue,
            guaranteed_cells={queue_guaranteed_cells},
            hysteresis_cells={hysteresis_cells},
            tail_drop_enable=True,
            pool_id="EG_APP_POOL_0",
            pool_max_cells={queue_share_cells},
            dynamic_baf="80%",
        )
        tm.queue.color.mod(pipe=pipe, pg_id=group, pg_queue=queue, drop_enable=False)
        tm.queue.sched_cfg.mod(
            pipe=pipe,
            pg_id=group,
            pg_queue=queue,
            min_priority=str(level),
            min_rate_enable=False,
            max_priority=str(level),
            max_rate_enable=False,
            scheduling_enable=True,
        )

bfrt.complete_operations()
"""


def sde_qos(fabric: Fabric, switch: str) -> str:
    """Return a script for the ports of a switch that have cables. It may run again.

    A packet of level n waits in queue n. Queue 7 is served first.

    Raises:
        TofinoPortError: A cable needs a port that Tofino does not have.
    """
    ports = tofino_ports(fabric, switch)
    groups = dict.fromkeys((port.pipe, port.group) for port in ports)
    return "\n".join(
        (
            _HEAD.format(switch=printable(switch), ingress_cells=INGRESS_POOL_CELLS, egress_cells=EGRESS_POOL_CELLS),
            "# Pipe, port group",
            "groups = (",
            *(f"    {group}," for group in groups),
            ")",
            _GROUPS.format(levels=LEVELS, lanes=LANES_PER_GROUP),
            "# Pipe, port group, lane, device port, rate in kbit/s where its cable is slower than a port",
            "ports = (",
            *map(_row, ports),
            ")",
            _PORTS.format(
                levels=LEVELS,
                port_guaranteed_cells=PORT_GUARANTEED_CELLS,
                port_share_cells=PORT_SHARE_CELLS,
                queue_guaranteed_cells=QUEUE_GUARANTEED_CELLS,
                queue_share_cells=QUEUE_SHARE_CELLS,
                hysteresis_cells=HYSTERESIS_CELLS,
                burst_bytes=BURST_BYTES,
            ),
        )
    )


def _row(port: TofinoPort) -> str:
    shaped_kbps = None if port.shaped_bps is None else port.shaped_bps // 1000
    values = (port.pipe, port.group, port.first_lane, port.number, shaped_kbps)
    return f"    {values},  # {printable(port.name)}"
