"""What programs in the hosts of a fabric have as ``/etc/hosts`` and ``/etc/resolv.conf``."""

import re
from ipaddress import IPv4Address
from pathlib import Path

from topologies.fabric import Fabric

_NOT_IN_HOSTS_FILE = re.compile(r"[\s#]")


def hosts_file(fabric: Fabric) -> str:
    """Return the contents of ``/etc/hosts``: the fabric's hosts, but for those whose names cannot stand there."""
    named = {host: nics[0] for host, nics in fabric.nics.items() if not _NOT_IN_HOSTS_FILE.search(host)}
    lines = (f"{IPv4Address(nic.address)} {host}" for host, nic in named.items())
    return "\n".join(("127.0.0.1 localhost", *lines, ""))


def write_host_files(fabric: Fabric, folder: Path) -> None:
    """Write ``hosts`` and ``resolv.conf`` to a folder, so that the fabric's hosts are found by name, and nothing else.

    Programs that look other names up are refused at once: in vain they would wait for seconds.
    """
    (folder / "hosts").write_text(hosts_file(fabric), encoding="utf-8")
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    for name in ("hosts", "resolv.conf"):
        (folder / name).chmod(0o644)
    folder.chmod(0o755)
