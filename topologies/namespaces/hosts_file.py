"""What programs in the hosts of a fabric have as ``/etc/hosts``."""

import re

from topologies.fabric import Fabric

_NOT_IN_HOSTS_FILE = re.compile(r"[\s#]")


def hosts_file(fabric: Fabric) -> str:
    """Return the contents of ``/etc/hosts``: the fabric's hosts, but for those whose names cannot stand there."""
    named = {host: nics[0] for host, nics in fabric.nics.items() if not _NOT_IN_HOSTS_FILE.search(host)}
    lines = (f"{nic.address} {host}" for host, nic in named.items())
    return "\n".join(("127.0.0.1 localhost", *lines, ""))
