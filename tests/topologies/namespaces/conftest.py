"""Fabrics and their namespaces, for tests that need them; a machine that permits none skips these, saying why."""

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.patience import PATIENCE_S
from tests.topologies.namespaces.owners import small_fabric
from topologies.namespaces.fabric_namespaces import FabricNamespaces

_WITHOUT_ROOT = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


@pytest.fixture(params=["root", "without root"])
def beginning(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """How a command line begins that makes namespaces as root, and without."""
    is_root = os.geteuid() == 0
    if request.param == "root" and not is_root:
        pytest.skip("needs root: namespaces that the machine sees are not tried")
    start = _WITHOUT_ROOT if request.param != "root" and is_root else ()
    skip_unless_permitted(start)
    return start


@pytest.fixture(scope="module")
def permitted() -> None:
    """Skip where this process may make no namespaces, or iproute2 is missing."""
    skip_unless_permitted(())


@pytest.fixture(scope="module")
def namespaces() -> Iterator[FabricNamespaces]:
    """The namespaces of two hosts with two NICs each."""
    skip_unless_permitted(())
    with FabricNamespaces(small_fabric(), mtu_bytes=4000) as made:
        yield made


def skip_unless_permitted(start: tuple[str, ...]) -> None:
    """Skip where a process whose command line begins so may make no namespaces, or iproute2 is missing."""
    missing = [program for program in ("ip", "tc", "unshare") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} of iproute2 and util-linux not found: namespaces are not tried")
    users = () if os.geteuid() == 0 and not start else ("--user", "--map-root-user")
    command = [*start, "unshare", *users, "--net", "--mount", "--pid", "--fork", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if tried.returncode:
        pytest.skip(f"namespaces are not permitted here, and not tried: {tried.stderr.strip()}")
