"""What programs in the hosts of a fabric have as ``/etc/hosts`` and ``/etc/resolv.conf``."""

from ipaddress import IPv4Address
from pathlib import Path

from topologies.fabric import Fabric


def write_host_files(fabric: Fabric, folder: Path) -> None:
    """Write ``hosts`` and ``resolv.conf`` to a folder, so that the fabric's hosts are found by name, and nothing else.

    Programs that look other names up are refused at once: in vain they would wait for seconds.
    """
    hosts = [f"{IPv4Address(nics[0].address)} {host}" for host, nics in fabric.nics.items()]
    (folder / "hosts").write_text("\n".join(("127.0.0.1 localhost", *hosts, "")))
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    for name in ("hosts", "resolv.conf"):
        (folder / name).chmod(0o644)
    folder.chmod(0o755)
