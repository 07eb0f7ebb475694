"""What is gone cannot be counted, and is named."""

from pathlib import Path

import pytest

from topologies.namespaces.frame_counts import frame_bytes
from topologies.namespaces.host_network import NetworkError

_TABLE = """Inter-|   Receive          |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
h0-eth0: 514 1 0 0 0 0 0 0 7294 7 0 0 0 0 0 0
"""


def test_an_interface_that_is_gone_is_named(tmp_path: Path) -> None:
    table = tmp_path / "dev"
    table.write_text(_TABLE)
    assert frame_bytes(table, {("h0", 0): "h0-eth0"}) == {("h0", 0): (514, 7294)}
    with pytest.raises(NetworkError, match=r"^interface h1-eth0 of h1.0 is gone$"):
        frame_bytes(table, {("h0", 0): "h0-eth0", ("h1", 0): "h1-eth0"})


def test_a_table_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=f"{tmp_path}/dev: No such file or directory"):
        frame_bytes(tmp_path / "dev", {})
