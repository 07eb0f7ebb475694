"""Sets a network interface up as the NIC of a fabric's host; run inside the host's network namespace.

All that must be right before TCP works well through emulated switches is here:

- Switches answer no ARP: one permanent neighbour stands for the fabric, and all hosts are reached through it.
- Switches see frames as they are: the interface may neither leave checksums to hardware nor join packets.
- Nothing but the host's programs may speak: IPv6 is off.
- A flow that a more urgent one has starved must come back at once: a short retransmission timeout, no slow start after
  a pause, and Cubic, which fills long queues where BBR gives up. In an outage it tries again every other second, and
  gives up after eight minutes.
- A host waits for its own link: HTB holds it to the link's rate, with a queue for each level, the most urgent first.

Mininet's hosts run this file by itself, so that it needs nothing but Python and iproute2.
"""

import ctypes
import fcntl
import json
import socket
import struct
import subprocess  # nosec B404 # runs our own programs and iproute2, without a shell
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NUM_LEVELS = 8
DEFAULT_MTU_BYTES = 9000
GATEWAY = "169.254.1.1"
"""Stands for the fabric, whose switches route by the destination's address alone; no host has it."""
GATEWAY_MAC = "06:00:00:00:00:01"

_ETHTOOL = 0x8946
_OFFLOADS = {
    "receive checksums": 0x15,
    "checksums": 0x17,
    "scatter-gather": 0x19,
    "TSO": 0x1F,
    "GSO": 0x24,
    "GRO": 0x2C,
}
# A new namespace forwards where the machine does: a host would send back what switches bring it by mistake.
_IPV4_SETTINGS = {"ip_forward": "0", "tcp_slow_start_after_idle": "0", "tcp_no_metrics_save": "1"}
_OUTAGE_SETTINGS = {"tcp_rto_max_ms": "2000", "tcp_retries2": "255"}
"""Tries follow each other so fast since Linux 6.15 only; before, they come ever more rarely, up to two minutes."""
_RECEIVING_CORES = Path("/proc/sys/net/core/rps_default_mask")
"""Since Linux 6.3."""
_QUEUE = "pfifo limit 200"
_LEAST_BPS = 100_000
_SHARE_OF_RATE = 0.99
"""So that a host's packets wait in its own queues, by level, and not in the first switch's."""
_ETHERNET_BYTES = 14


class NetworkError(Exception):
    """An interface could not be set up; the text says why."""


@dataclass(frozen=True)
class HostNic:
    """A NIC of a host.

    Attributes:
        interface: Name of its interface.
        mac: Its MAC address, as text; None: the one that it has.
        address: Its IPv4 address, as text.
        rate_bps: What its link carries.
        mtu_bytes: The longest IP packet.
        prefix_length: Length of its subnet's prefix, for a NIC that has its address and nothing else: no route, no
            neighbour, and no limit to what it sends. None: a NIC of a fabric whose switches route by addresses alone.
    """

    interface: str
    mac: str | None
    address: str
    rate_bps: float
    mtu_bytes: int
    prefix_length: int | None = None


def class_of_level(level: int) -> int:
    """Return the minor number of a level's HTB class, whose major number is 1."""
    return 0x10 + level


def socket_priority(level: int) -> int:
    """Return the SO_PRIORITY of sockets whose packets wait in a level's queue, whatever their DSCP."""
    return (1 << 16) + class_of_level(level)


def configure(nics: list[HostNic]) -> None:
    """Set up the NICs of the host in whose network namespace this runs; the first one is used by default.

    Raises:
        NetworkError: Something is not permitted, or missing.
    """
    disable_ipv6()
    for name, value in _IPV4_SETTINGS.items():
        write_setting(Path("/proc/sys/net/ipv4", name), value)
    for name, value in _OUTAGE_SETTINGS.items():
        if (setting := Path("/proc/sys/net/ipv4", name)).exists():
            write_setting(setting, value)
    run("ip", "link", "set", "lo", "up")
    for nic in nics:
        set_offloads_off(nic.interface)
        address = () if nic.mac is None else ("address", nic.mac)
        run("ip", "link", "set", nic.interface, *address, "mtu", str(nic.mtu_bytes), "up")
        if nic.prefix_length is not None:
            run("ip", "address", "replace", f"{nic.address}/{nic.prefix_length}", "dev", nic.interface)
            continue
        run("ip", "address", "replace", f"{nic.address}/32", "dev", nic.interface)
        neighbour = ("neighbour", "replace", GATEWAY, "lladdr", GATEWAY_MAC, "dev", nic.interface, "nud", "permanent")
        run("ip", *neighbour)
        _limit_rate(nic)
    for number, nic in enumerate(nic for nic in nics if nic.prefix_length is None):
        via = ("via", GATEWAY, "dev", nic.interface, "onlink", "src", nic.address)
        tcp = ("congctl", "cubic", "rto_min", "10ms")
        if number == 0:
            run("ip", "route", "replace", "default", *via, *tcp)
        if len(nics) == 1:
            continue  # rules slow every packet down that arrives
        # A program that binds a NIC's address sends by that NIC.
        table = str(100 + number)
        run("ip", "route", "replace", "default", *via, *tcp, "table", table)
        run("ip", "rule", "add", "from", nic.address, "table", table)


def receive_on_core(core: int) -> None:
    """Have interfaces that this network namespace will get take what arrives on one core, where the kernel can do it.

    Otherwise a host's TCP runs on the core, and in the time, of the process that has sent the frame: the emulator.
    """
    with suppress(OSError):  # a kernel that has no such setting, or keeps the core for others
        _RECEIVING_CORES.write_text(core_mask(core))


def core_mask(core: int) -> str:
    """Return a set of one core as the kernel reads it: words of 32 cores, the last ones first."""
    return ",".join(f"{1 << core >> first & 0xFFFFFFFF:08x}" for first in range(core // 32 * 32, -1, -32))


def disable_ipv6() -> None:
    """Turn IPv6 off in this network namespace, where the kernel has it."""
    for name in ("all", "default"):
        setting = Path("/proc/sys/net/ipv6/conf", name, "disable_ipv6")
        if setting.exists():
            write_setting(setting, "1")


def set_offloads_off(interface: str) -> None:
    """Have an interface send frames as they are, with their checksums. Raises NetworkError where it refuses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, command in _OFFLOADS.items():
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(control, _ETHTOOL, request)
            except OSError as error:
                raise NetworkError(f"{interface}: {name} cannot be turned off: {error.strerror}") from error


def run(*command: str, given: str = "") -> str:
    """Run a command and return what it says. Raises NetworkError with its complaint where it fails or is missing."""
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)  # nosec B603 # no shell
    except FileNotFoundError:
        raise NetworkError(f"{command[0]} is not found: namespaces need iproute2") from None
    if done.returncode:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return done.stdout


def queue_commands(interface: str, rate_bps: float, mtu_bytes: int, queue: str) -> list[str]:
    """Return the commands of ``tc -batch`` that hold an interface to a rate, with a queue for each level.

    A packet waits in the queue of its DSCP class; class 7 is served first. What is not IPv4 waits in that of level 0.

    Args:
        interface: Its name.
        rate_bps: What it may send.
        mtu_bytes: The longest IP packet.
        queue: What tc calls each queue, and how much waits there at most: ``pfifo limit 200``.
    """
    rate = f"{round(rate_bps)}bit"
    least = f"{min(_LEAST_BPS, round(rate_bps / 100))}bit"
    frame = mtu_bytes + _ETHERNET_BYTES
    burst = max(2 * frame, round(rate_bps / 8 / 1000))  # what the link carries in a millisecond
    device = f"dev {interface}"
    commands = [
        f"qdisc replace {device} root handle 1: htb default {class_of_level(0):x}",
        f"class add {device} parent 1: classid 1:1 htb rate {rate} burst {burst} cburst {burst} quantum {frame}",
    ]
    for level in range(NUM_LEVELS):
        number = f"1:{class_of_level(level):x}"
        share = f"rate {least} ceil {rate} burst {frame} cburst {burst}"
        match = f"match ip dsfield 0x{level << 5:02x} 0xe0"
        commands += [
            f"class add {device} parent 1:1 classid {number} htb {share} prio {NUM_LEVELS - 1 - level} quantum {frame}",
            f"qdisc add {device} parent {number} {queue}",
            f"filter add {device} parent 1: protocol ip prio {1 + level} u32 {match} flowid {number}",
        ]
    return commands


def _limit_rate(nic: HostNic) -> None:
    commands = queue_commands(nic.interface, nic.rate_bps * _SHARE_OF_RATE, nic.mtu_bytes, _QUEUE)
    run("tc", "-batch", "-", given="".join(f"{command}\n" for command in commands))


def write_setting(setting: Path, value: str) -> None:
    """Write a setting of the kernel. Raises NetworkError where that is not permitted."""
    try:
        setting.write_text(value)
    except OSError as error:
        raise NetworkError(f"{setting}: {error.strerror}") from error


if __name__ == "__main__":
    try:
        configure([HostNic(**nic) for nic in json.loads(sys.argv[1])])
    except NetworkError as error:
        sys.exit(str(error))
