"""TCP of hosts goes on soon after an outage, and outlives one that is long."""

import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import NetworkError
from topologies.specification import StarSpecification

SETTINGS = "/proc/sys/net/ipv4/tcp_rto_max_ms", "/proc/sys/net/ipv4/tcp_retries2"


def test_a_host_tries_again_every_other_second_and_does_not_give_up_soon() -> None:
    if not Path(SETTINGS[0]).exists():
        pytest.skip("this kernel, older than Linux 6.15, has no longest time between tries")
    star = StarSpecification(kind="star", hosts=1, gpus_per_host=1, nics_per_host=1, host_link_gbps=1)
    try:
        with FabricNamespaces(star.build()) as namespaces:
            command = namespaces.command("h0", "cat", *SETTINGS)
            read = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    except NetworkError as error:
        pytest.skip(f"no hosts can be made: {error}")
    between_ms, tries = map(int, read.stdout.split())
    assert between_ms <= 2000
    assert between_ms * tries >= 300_000
