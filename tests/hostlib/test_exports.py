"""The public names are exactly those of ``hostlib.__all__``."""

import subprocess
import sys
from types import ModuleType

import hostlib


def test_nothing_leaks_beside_the_exported_names() -> None:
    public = {
        name for name, value in vars(hostlib).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public == set(hostlib.__all__)


def test_exported_names_are_sorted_and_exist() -> None:
    assert list(hostlib.__all__) == sorted(hostlib.__all__)
    assert all(hasattr(hostlib, name) for name in hostlib.__all__)


def test_public_errors_show_no_grpc() -> None:
    reason = hostlib.RefusedError(hostlib.RefusalReason.INVALID, "gpus: expected at least 1").reason
    assert type(reason).__module__ == "hostlib.errors"


def test_import_brings_one_top_level_module_of_ours() -> None:
    ours = "{'controller', 'emulator', 'experiments', 'policies', 'simulator', 'topologies', 'trainyard', 'workloads'}"
    script = f"import sys, hostlib, hostlib.arrangements, hostlib.task_graphs; assert not {ours} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", script], check=True)
