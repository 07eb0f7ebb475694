"""An operator's sessions in p4runtime-shell, as a script that the test runs in the shell's own interpreter.

Its arguments are the session, the P4Runtime address, the P4Info, the program and, for ``send``, a port and packets. Its
last line is what it saw, as JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import grpc
import p4runtime_sh.shell as shell
from p4runtime_sh.p4runtime import P4RuntimeException, P4RuntimeWriteException

_FLOW = {
    "source_address": "10.0.0.1",
    "destination_address": "10.0.0.2",
    "protocol": "17",
    "source_port": "50000",
    "destination_port": "4791",
}
_LOOK_S = 0.1
_IDLE_NS = 20_000_000
_PATIENCE_S = 300.0
"""Only a session that hangs waits so long, however busy the machine is."""


def operate(address: str, p4info: str, program: str) -> dict[str, Any]:
    """Set the pipeline of a switch without a controller, then insert, read, modify and delete an entry."""
    shell.setup(device_id=1, grpc_addr=address, config=shell.FwdPipeConfig(p4info, program), verbose=False)
    entry = shell.TableEntry("ingress.flow")(action="ingress.prioritise")
    entry.match.set(**_FLOW)
    entry.action["level"] = "3"
    entry.insert()
    seen: dict[str, Any] = {"inserted": _levels()}
    seen["inserted twice"] = _refusal(entry.insert)
    counter = shell.DirectCounterEntry("ingress.flow_counter")
    counter.table_entry.match.set(**_FLOW)
    seen["counted"] = [(count.packet_count, count.byte_count) for count in counter.read()]
    entry.action["level"] = "5"
    entry.modify()
    seen["modified"] = _levels()
    entry.action["level"] = "7"
    entry.delete()
    seen["deleted"] = _levels()
    seen["deleted twice"] = _refusal(entry.delete)
    shell.teardown()
    return seen


def look_on(address: str, p4info: str, program: str) -> dict[str, Any]:
    """Read the routes of a controller with a higher election id, then try to write."""
    shell.setup(device_id=1, grpc_addr=address, verbose=False)
    routes = 0

    def has_routes() -> bool:
        nonlocal routes
        routes = len(list(shell.TableEntry("ingress.routing").read()))
        return routes > 0

    _wait_until(has_routes)
    entry = shell.TableEntry("ingress.flow")(action="ingress.prioritise")
    entry.match.set(**_FLOW)
    entry.action["level"] = "3"
    seen = {"routes": routes, "insert": _refusal(entry.insert), "levels": _levels()}
    try:
        shell.client.set_fwd_pipe_config(p4info, program)
        seen["pipeline"] = None
    except P4RuntimeException as error:
        seen["pipeline"] = error.grpc_error.code().name
    shell.teardown()
    return seen


def listen(address: str, p4info: str, program: str) -> dict[str, Any]:
    """Count a flow as primary of the second switch, and receive what the program sends to the CPU port.

    It ends with the first such packet, once the flow is counted.
    """
    shell.setup(device_id=2, grpc_addr=address, config=shell.FwdPipeConfig(p4info, program), verbose=False)
    entry = shell.TableEntry("ingress.flow")(action="ingress.prioritise")
    entry.match.set(**_FLOW)
    entry.action["level"] = "3"
    entry.insert()
    packets = shell.PacketIn()
    print("listening", flush=True)
    received: list[Any] = []
    counts: list[list[int]] = []

    def is_over() -> bool:
        received.extend(message.packet for message in packets.sniff(timeout=_LOOK_S))
        counter = shell.DirectCounterEntry("ingress.flow_counter")
        counter.table_entry.match.set(**_FLOW)
        counts[:] = [[count.packet_count, count.byte_count] for count in counter.read()]
        return bool(received) and any(count != [0, 0] for count in counts)

    _wait_until(is_over)
    ports = [int.from_bytes(packet.metadata[0].value, "big") for packet in received]
    seen = {"counted": counts, "received": [packet.payload.hex() for packet in received], "ports": ports}
    shell.teardown()
    return seen


def age(address: str, p4info: str, program: str) -> dict[str, Any]:
    """Insert an entry with a timeout, hear that it is idle, see since when, and remove it."""
    shell.setup(device_id=1, grpc_addr=address, config=shell.FwdPipeConfig(p4info, program), verbose=False)
    notifications = shell.IdleTimeoutNotification()
    entry = shell.TableEntry("ingress.learned")(action="ingress.forward")
    entry.match["source"] = "7"
    entry.action["port"] = "2"
    entry.idle_timeout_ns = _IDLE_NS
    entry.insert()
    told: list[Any] = []

    def is_over() -> bool:
        told.extend(message.idle_timeout_notification for message in notifications.sniff(timeout=_LOOK_S))
        return bool(told)

    _wait_until(is_over)
    request = shell.TableEntry("ingress.learned")
    request.match["source"] = "7"
    assert request.time_since_last_hit.elapsed_ns == 0  # asks for it
    [found] = request.read()
    seen = {
        "told": [entry.match[0].exact.value.hex() for entry in told[0].table_entry],
        "timeouts": [entry.idle_timeout_ns for entry in told[0].table_entry],
        "has been idle": found.time_since_last_hit.elapsed_ns >= _IDLE_NS,
    }
    entry.delete()
    seen["left"] = len(list(shell.TableEntry("ingress.learned").read()))
    shell.teardown()
    return seen


def send(address: str, p4info: str, program: str, port: str, *packets: str) -> dict[str, Any]:
    """Send packets out of a port as primary of the first switch, and count them."""
    shell.setup(device_id=1, grpc_addr=address, config=shell.FwdPipeConfig(p4info, program), verbose=False)
    for packet in packets:
        shell.PacketOut(bytes.fromhex(packet), egress_port=port, padding="0").send()
    counter = shell.CounterEntry("egress.level_counter")
    sent = 0

    def all_have_left() -> bool:
        nonlocal sent
        sent = sum(cell.packet_count for cell in counter.read())
        return sent >= len(packets)

    _wait_until(all_have_left)
    shell.teardown()
    return {"sent": sent}


def _wait_until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds, or for the timeout: the test checks what was seen."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not holds() and time.monotonic() < deadline_s:
        time.sleep(_LOOK_S)


def _levels() -> list[int]:
    """Return the levels of all entries of the flow table."""
    entries = shell.TableEntry("ingress.flow").read()
    return [int.from_bytes(entry.action.msg().params[0].value, "big") for entry in entries]


def _refusal(write: Any) -> str | None:
    try:
        write()
    except P4RuntimeWriteException as error:
        return str(error)
    except grpc.RpcError as error:
        return error.code().name
    return None


if __name__ == "__main__":
    sessions = {"operate": operate, "look_on": look_on, "listen": listen, "send": send, "age": age}
    session = sessions[sys.argv[1]]
    print("\n" + json.dumps(session(*sys.argv[2:])))
