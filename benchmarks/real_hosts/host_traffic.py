"""What hosts send and receive in measurements, as a program; it prints one JSON object.

    python host_traffic.py reach ADDRESS...                        ask hosts for an answer until all have given one
    python host_traffic.py ping ADDRESS LEVEL COUNT                ask a host for answers, and time them
    python host_traffic.py receive PORT BEGIN_S END_S              accept one connection, and rate what it brings
    python host_traffic.py send ADDRESS PORT LEVEL END_S           send over one connection as fast as it goes
    python host_traffic.py take PORT END_S                         have datagrams arrive, and read none
    python host_traffic.py flood ADDRESS PORT BYTES PER_S END_S    send so many datagrams a second

Times are the machine's monotonic clock, which is the same in all hosts. A level is 0 to 7. It is run by its path and
needs Python alone.
"""

import json
import os
import socket
import struct
import sys
import time
from contextlib import suppress

_ECHO = struct.Struct("!BBHHH")
_ECHO_REQUEST, _ECHO_REPLY = 8, 0
_IP_HEADER_BYTES = 20
_INTERVAL_S = 0.005
_PATIENCE_S = 1.0
_REACHED_WITHIN_S = 120.0
_CHUNK_BYTES = 1 << 18
_LOOK_US = 50_000
_BURST = 32
_MOST_FAVOURABLE = -20
_UDP_SEGMENT = 103


def reach(*addresses: str) -> dict[str, object]:
    """Ask each host until it answers."""
    deadline_s = time.monotonic() + _REACHED_WITHIN_S
    with _asking(0) as asking:
        for number, address in enumerate(addresses):
            while _round_trip_s(asking, address, number, 0.1) is None:
                if time.monotonic() > deadline_s:
                    sys.exit(f"{address} has not answered within {_REACHED_WITHIN_S:g} s")
    return {}


def ping(address: str, level: str, count: str) -> dict[str, object]:
    """Time answers; one that does not come counts as the time for which it was waited."""
    _ask_for_the_processor()
    times_s = []
    with _asking(int(level)) as asking:
        for number in range(int(count)):
            found_s = _round_trip_s(asking, address, number, _PATIENCE_S)
            times_s.append(_PATIENCE_S if found_s is None else found_s)
            time.sleep(_INTERVAL_S)
    return {"round_trips_s": times_s}


def receive(port: str, begin_s: str, end_s: str) -> dict[str, object]:
    """Count what a connection brings between two times."""
    with socket.create_server(("", int(port))) as listener:
        listener.settimeout(max(0.0, float(end_s) - time.monotonic()))
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            return {"rate_bps": 0.0}
    connection.setblocking(True)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, _LOOK_US))
    buffer, count, first_s, now_s = bytearray(_CHUNK_BYTES), 0, 0.0, 0.0
    with connection:
        while now_s < float(end_s):
            read = 0
            with suppress(BlockingIOError):
                read = connection.recv_into(buffer, len(buffer), socket.MSG_WAITALL)
            now_s = time.monotonic()
            if first_s:
                count += read
            elif now_s >= float(begin_s):
                first_s = now_s
    return {"rate_bps": 8 * count / (now_s - first_s)}


def send(address: str, port: str, level: str, end_s: str) -> dict[str, object]:
    """Send until a time, or until the other end has had enough."""
    chunk = bytes(_CHUNK_BYTES)
    with socket.socket() as connection:
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(level) << 5)
        connection.connect((address, int(port)))
        connection.settimeout(_LOOK_US / 1e6)
        with suppress(ConnectionError):
            while time.monotonic() < float(end_s):
                with suppress(TimeoutError):
                    connection.send(chunk)
    return {}


def take(port: str, end_s: str) -> dict[str, object]:
    """Have a socket for datagrams, so that the host complains about none; it keeps few."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taking:
        taking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        taking.bind(("", int(port)))
        time.sleep(max(0.0, float(end_s) - time.monotonic()))
    return {}


def flood(address: str, port: str, size_bytes: str, per_s: str, end_s: str) -> dict[str, object]:
    """Send datagrams, which the kernel cuts from large ones, from the last core, which real time leaves free."""
    _ask_for_the_processor()
    with suppress(OSError):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    burst, sent, began_s = bytes(_BURST * int(size_bytes)), 0, time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flooding:
        flooding.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, int(size_bytes))
        flooding.connect((address, int(port)))
        while (now_s := time.monotonic()) < float(end_s):
            if sent > (now_s - began_s) * float(per_s):
                time.sleep(_BURST / float(per_s))
            else:
                with suppress(ConnectionRefusedError):
                    flooding.send(burst)
                sent += _BURST
    return {"sent_per_s": sent / (time.monotonic() - began_s)}


def _ask_for_the_processor() -> None:
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _MOST_FAVOURABLE)


def _asking(level: int) -> socket.socket:
    asking = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    asking.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, level << 5)
    return asking


def _round_trip_s(asking: socket.socket, address: str, number: int, patience_s: float) -> float | None:
    """Return how long the answer takes, None where there is none."""
    identifier = os.getpid() & 0xFFFF
    total = (_ECHO_REQUEST << 8) + identifier + number
    total = (total & 0xFFFF) + (total >> 16)
    asked_s = time.monotonic()
    asking.sendto(_ECHO.pack(_ECHO_REQUEST, 0, ~total & 0xFFFF, identifier, number), (address, 0))
    while (left_s := asked_s + patience_s - time.monotonic()) > 0:
        asking.settimeout(left_s)
        try:
            answer = asking.recv(256)
        except TimeoutError:
            return None
        taken_s = time.monotonic() - asked_s
        kind, _, _, *whose = _ECHO.unpack_from(answer, _IP_HEADER_BYTES)
        if (kind, *whose) == (_ECHO_REPLY, identifier, number):
            return taken_s
    return None


if __name__ == "__main__":
    _ACTIONS = {each.__name__: each for each in (reach, ping, receive, send, take, flood)}
    print(json.dumps(_ACTIONS[sys.argv[1]](*sys.argv[2:])))
