"""Islands on hosts of a network: what they pass to each other goes over it, and nothing else does."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.server.settings import ClientSettings, IslandSettings, ServerSettings, controllers_of
from runtime.substrates.interface import NetworkHost
from runtime.substrates.ray_cluster import RaySettings
from tests.namespaces import Namespaces
from tests.patience import PATIENCE_S
from tests.runtime.cabled import sent_bytes, two_network_hosts

ITEMS = 1 << 16
SIZE_BYTES = 8 * ITEMS
H0 = NetworkHost("h0", "10.0.0.1")

add_one = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x + 1)


@pytest.fixture(scope="module")
def network() -> Iterator[tuple[dict[int, NetworkHost], Namespaces]]:
    with two_network_hosts() as made:
        yield made


@pytest.fixture
def cabled(network: tuple[dict[int, NetworkHost], Namespaces]) -> Iterator[tuple[rt.LocalRuntime, Namespaces]]:
    """Two islands of one host each."""
    with rt.local(islands=2, network_hosts=network[0]) as started:
        yield started, network[1]


@pytest.fixture
def one_island(network: tuple[dict[int, NetworkHost], Namespaces]) -> Iterator[tuple[rt.LocalRuntime, Namespaces]]:
    """An island of two hosts."""
    with rt.local(hosts=2, devices=1, network_hosts=network[0]) as started:
        yield started, network[1]


def placed(runtime: rt.Runtime, island: int) -> Any:
    slice_ = runtime.make_virtual_device_set().add_slice(2, island=f"island-{island}")
    return rt.pmap(add_one, devices=slice_)


@pytest.mark.slow
def test_arrays_for_another_island_go_over_the_network(cabled: tuple[rt.LocalRuntime, Namespaces]) -> None:
    runtime, made = cabled
    here, there = placed(runtime, 0), placed(runtime, 1)
    x = np.arange(float(ITEMS))
    before = [sent_bytes(made, name) for name in ("h0", "h2")]
    assert (here(there(here(x))).numpy(PATIENCE_S) == x + 3).all()
    after = [sent_bytes(made, name) for name in ("h0", "h2")]
    for sent, sent_before in zip(after, before, strict=True):
        assert SIZE_BYTES < sent - sent_before < 1.5 * SIZE_BYTES


@pytest.mark.slow
def test_arrays_inside_an_island_do_not(cabled: tuple[rt.LocalRuntime, Namespaces]) -> None:
    runtime, made = cabled
    here, again = placed(runtime, 0), placed(runtime, 0)
    before = sent_bytes(made, "h0")
    x = np.arange(float(ITEMS))
    assert (again(here(x)).numpy(PATIENCE_S) == x + 2).all()
    assert sent_bytes(made, "h0") - before < SIZE_BYTES / 2


@pytest.mark.slow
def test_hosts_of_one_island_share_memory_all_the_same(one_island: tuple[rt.LocalRuntime, Namespaces]) -> None:
    runtime, made = one_island
    slice_ = runtime.make_virtual_device_set().add_slice(2)
    split = rt.pmap(add_one, devices=slice_)
    whole = rt.pmap(add_one, devices=slice_, in_axes=None, out_axes=None)
    before = sent_bytes(made, "h0")
    x = np.arange(float(ITEMS))
    assert (whole(split(x)).numpy(PATIENCE_S) == x + 2).all()
    assert sent_bytes(made, "h0") - before < SIZE_BYTES / 2


@rt.function(collective=True)
def summed_and_gathered(x: Any) -> Any:
    return rt.all_reduce(x), rt.all_gather(x)


@pytest.mark.slow
def test_shards_of_an_island_reduce_in_memory_and_gather_over_the_network(
    one_island: tuple[rt.LocalRuntime, Namespaces],
) -> None:
    runtime, made = one_island
    both = rt.pmap(summed_and_gathered, devices=runtime.make_virtual_device_set().add_slice(2))
    before = sent_bytes(made, "h0")
    sums, gathered = both(np.ones((2, ITEMS), np.float32))
    assert (sums.numpy(PATIENCE_S) == 2).all()
    assert (gathered.numpy(PATIENCE_S) == 1).all()
    assert sent_bytes(made, "h0") - before > ITEMS  # the loopback interface of one host does not reach the other


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "why"),
    [
        (NetworkHost("h0", "127.0.0.1", ("no-such-command",)), "host 0: no-such-command does not start: No such file"),
        (NetworkHost("h0", "127.0.0.1", ("false",)), "host 0: its process ended with exit status 1"),
        (NetworkHost("h0", "192.0.2.1"), "host 0: its process ended with exit status 1"),
    ],
)
def test_a_host_that_ends_before_it_connects_is_named_and_not_waited_for(host: NetworkHost, why: str) -> None:
    with pytest.raises(OSError, match=f"the server did not start: {why}"):
        rt.local(devices=1, network_hosts={0: host})


def server_settings(address: str = "unix:/s", **given: Any) -> ServerSettings:
    return ServerSettings(
        address, "/", (IslandSettings("east", 2, 1),), (ClientSettings("a", "t"),), "s", "fifo", 0.02, **given
    )


def test_a_host_that_no_island_has_cannot_be_on_the_network() -> None:
    assert server_settings(network_hosts={1: H0}).network_hosts == {1: H0}
    with pytest.raises(ValueError, match="network_hosts: there is no host 2"):
        server_settings(network_hosts={2: H0})
    with pytest.raises(ValueError, match="network: expected shared-memory"):
        server_settings(network_hosts={1: H0}, network="tcp")


def test_settings_that_exclude_or_need_each_other_are_refused_by_name() -> None:
    ray = RaySettings()
    with pytest.raises(ValueError, match="network_hosts: ray is given too"):
        server_settings(address="127.0.0.1:0", network_hosts={1: H0}, ray=ray)
    with pytest.raises(ValueError, match="controllers: network_hosts are missing"):
        server_settings(controllers=("one:4790",))
    assert server_settings(network_hosts={1: H0}, controllers=("one:4790",)).controllers == ("one:4790",)


@pytest.mark.slow
def test_credentials_of_the_environment_that_cannot_be_used_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_CERTIFICATE", "certificate.pem")
    with pytest.raises(OSError, match=r"the server did not start: .*missing"):
        rt.local(devices=1, network_hosts={0: NetworkHost("h0", "127.0.0.1")}, controller="one:4790")


def test_an_address_or_a_nic_that_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"network host h9: address: expected one of IPv4, got 'h9.example'"):
        NetworkHost("h9", "h9.example")
    with pytest.raises(ValueError, match=r"network host h9: nic: must not be negative, got -1"):
        NetworkHost("h9", "10.0.9.1", nic=-1)


def test_controllers_are_given_with_commas_between() -> None:
    assert controllers_of("one:4790, unix:/two") == ("one:4790", "unix:/two")
    for wrong in ("nowhere", " , "):
        with pytest.raises(ValueError, match="address: expected HOST:PORT"):
            controllers_of(wrong)
