"""What runs on the nodes of a Ray cluster: an executor in an actor, and where shards of collectives meet."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.codec import decode_plain
from runtime.substrates.interface import HostSettings

if TYPE_CHECKING:
    from torch.distributed import Store

_NAMESPACE = b"trainyard"
_LOOK_S = 2e-3


def at_address(node: str) -> str:
    """Return where to listen on a node of an IP address, at whatever port is free."""
    return f"[{node}]:0" if ":" in node else f"{node}:0"


class RayHost:
    """An actor that is a host. Its executor runs in the actor's own process, until the server is gone."""

    def run(self, settings: str) -> None:
        """Run the executor, with its settings as JSON."""
        import ray

        from runtime.executor.process import SWITCH_S, Executor

        sys.setswitchinterval(SWITCH_S)
        told = decode_plain(HostSettings, json.loads(settings))
        address = at_address(ray.util.get_node_ip_address())
        try:
            executor = Executor(replace(told, address=address), ray_store)
        except OSError as error:
            raise ConnectionError(f"at {address}, for the server at {told.server}: {error}") from None
        executor.run()

    @staticmethod
    def forget(folder: str) -> None:
        """Remove what shards of a runtime have kept to find each other."""
        from ray.experimental.internal_kv import _internal_kv_del

        _internal_kv_del(f"{folder}/".encode(), del_by_prefix=True, namespace=_NAMESPACE)


def ray_store(path: Path) -> "Store":
    """Return a store of torch.distributed in the key-value store of the cluster; its keys begin with a path."""
    from ray.experimental import internal_kv
    from torch.distributed import Store

    class RayStore(Store):  # type: ignore[misc] # PyTorch's, which may not be installed
        """As PyTorch calls it from any thread."""

        def set(self, key: str, value: Any) -> None:
            """Give a key a value."""
            given = value.encode() if isinstance(value, str) else bytes(value)
            internal_kv._internal_kv_put(_name(key), given, overwrite=True, namespace=_NAMESPACE)

        def get(self, key: str) -> bytes:
            """Return the value of a key, once it has one."""
            while (found := internal_kv._internal_kv_get(_name(key), namespace=_NAMESPACE)) is None:
                time.sleep(_LOOK_S)
            return bytes(found)

        def check(self, keys: Sequence[str]) -> bool:
            """Return whether all keys have values."""
            return all(internal_kv._internal_kv_exists(_name(key), namespace=_NAMESPACE) for key in keys)

        def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
            """Wait until all keys have values. Raises TimeoutError."""
            until_s = None if timeout is None else time.monotonic() + timeout.total_seconds()
            while not self.check(keys):
                if until_s is not None and time.monotonic() > until_s:
                    raise TimeoutError(f"{', '.join(keys)}: nobody says it")
                time.sleep(_LOOK_S)

    def _name(key: str) -> bytes:
        return f"{path}/{key}".encode()

    return RayStore()
