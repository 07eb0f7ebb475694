"""What a process group is for: by the name that a device mesh gave it, else by what it does."""

from collections.abc import Mapping

import pytest

from hostlib.torch.process_groups import Group, role_of


def group(description: str = "undefined") -> Group:
    return Group("0", description, (0, 1), "gloo")


@pytest.mark.parametrize(
    ("description", "role"),
    [
        ("mesh_dp", "data"),
        ("mesh_dp_replicate", "data"),
        ("mesh_fsdp", "sharded"),
        ("mesh_tp", "tensor"),
        ("mesh_pp", "pipeline"),
        ("mesh_ep", "expert"),
        ("mesh_cp", "context"),
        ("tp", "tensor"),
    ],
)
def test_the_mesh_has_named_it(description: str, role: str) -> None:
    assert role_of(group(description), {"send": 5}) == role


@pytest.mark.parametrize(
    ("operations", "role"),
    [
        ({"allreduce_": 5}, "data"),
        ({"allreduce_coalesced_": 5, "broadcast_": 9}, "data"),
        ({"_reduce_scatter_base_": 5, "allreduce_": 50}, "sharded"),
        ({"_allgather_base_": 5}, "sharded"),
        ({"send": 5, "allreduce_": 1}, "pipeline"),
        ({"recv_": 5}, "pipeline"),
        ({"alltoall_base_": 5, "allreduce_": 1, "send": 2}, "expert"),
        ({"alltoall_": 5}, "expert"),
        ({"broadcast_": 5}, "other"),
        ({"barrier": 0}, "other"),
        ({"alltoall_base_": 0, "allreduce_": 5}, "data"),
        ({}, "other"),
    ],
)
def test_else_it_is_what_it_does(operations: Mapping[str, int], role: str) -> None:
    assert role_of(group(), operations) == role


@pytest.mark.parametrize("description", ["", "undefined", "default_pg", "mesh_tpu", "mesh_dim_0", "dpx"])
def test_other_names_tell_nothing(description: str) -> None:
    assert role_of(group(description), {"allreduce_": 5}) == "data"
