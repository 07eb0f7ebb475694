"""Groups of torch.distributed for the shards of slices. Each shard is a rank of its own, also within one process.

Ranks find each other through a file that all hosts see, or where hosts are on several machines through another store of
torch.distributed. A shard that fails breaks the group: it says why there and ends its connections, so nobody waits for
it. A group that is broken stays so; the server gives executions that begin later a new ``generation``. Shards of one
machine reduce small arrays without torch.distributed (``small_reductions``), and two of them larger ones too
(``shared_reductions``). Import PyTorch only where a collective function runs.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from runtime.collectives import Reduction
from runtime.executor import shared_reductions, small_reductions
from runtime.executor.shared_reductions import SharedReductions
from runtime.executor.small_reductions import DTYPES, SmallReductions
from runtime.messages import Place

if TYPE_CHECKING:
    from torch.distributed import AllreduceOptions, ProcessGroupGloo, Store

_PATIENCE = timedelta(days=1)
_LOOK_S = 0.5e-3


class GroupKey(NamedTuple):
    """Which group: of which client, since which failure, on which (host, device) pairs, one for each shard."""

    client: int
    generation: int
    places: tuple[tuple[int, int], ...]


class BrokenGroupError(RuntimeError):
    """Another shard of the call failed, or its host ended."""


class ShardGroup:
    """A group as one shard sees it (``runtime.collectives.Group``). Shards join it when they first use it.

    ``is_local`` says whether all of them share memory. ``address`` is the IP address at which the others reach this
    one, None: on the loopback interface.
    """

    def __init__(
        self, folder: Path, new_store: "NewStore", address: str | None, key: GroupKey, index: int, *, is_local: bool
    ) -> None:
        self.key = key
        self._is_local = is_local
        self.index = index
        self.size = len(key.places)
        self._path = folder / f"group-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"
        self._new_store = new_store
        self._address = address
        self._store: Store | None = None
        self._group: ProcessGroupGloo | None = None
        self._small: SmallReductions | None = None
        self._in_memory: SharedReductions | None = None
        self._cause: str | None = None

    def all_reduce(self, tensor: Any, reduction: Reduction) -> Any:
        """Return the reduced tensor. Raises BrokenGroupError."""
        result = tensor.detach().clone().contiguous()
        if self.size == 1:
            return result
        try:
            if self._is_swapped(result):
                self._swap(result.reshape(-1).numpy(), reduction)
            else:
                self._joined().allreduce([result], _options(reduction)).wait()
        except (RuntimeError, OSError) as error:
            raise self._broken(error) from None
        return result

    def all_gather(self, tensor: Any) -> list[Any]:
        """Return the tensors of all shards. Raises BrokenGroupError."""
        given = tensor.detach().contiguous()
        results = [given.new_empty(given.shape) for _ in range(self.size)]
        try:
            self._joined().allgather([results], [given]).wait()
        except RuntimeError as error:
            raise self._broken(error) from None
        return results

    def break_(self, cause: str) -> None:
        """Let nobody wait for this shard any more. Any thread may call this, more than once."""
        if self._cause is None:
            self._cause = cause
            with suppress(RuntimeError, OSError):  # the folder may be gone, and everybody with it
                store = self._shared()
                if not store.check(["cause"]):
                    store.set("cause", cause)
        self._group = self._in_memory = None  # what they hold ends with them, once nobody computes with them
        if self._small is not None:
            self._small.close()

    def _shared(self) -> "Store":
        if self._store is None:
            self._store = self._new_store(self._path)
        return self._store

    def _is_swapped(self, tensor: Any) -> bool:
        """Return whether shards reduce a tensor by themselves."""
        most_bytes = shared_reductions.MOST_BYTES if self.size == 2 else small_reductions.MOST_BYTES
        return self._is_local and tensor.nbytes <= most_bytes and str(tensor.dtype) in DTYPES

    def _swap(self, row: np.ndarray[Any, Any], reduction: Reduction) -> None:
        connections = self._joined_small()
        if row.nbytes <= small_reductions.MOST_BYTES:
            connections.reduce(row, reduction)
            return
        in_memory = self._in_memory  # another thread may break the group
        if in_memory is None:
            in_memory = self._in_memory = SharedReductions(connections, self.index)
        in_memory.reduce(row, reduction)

    def _joined_small(self) -> SmallReductions:
        """Return the connections for small arrays once all shards are there."""
        if self._small is None:
            # The path of a socket must be short.
            joining = SmallReductions(self._path.with_name(self._path.name[-8:]), self.index, self.size)
            try:
                self._meet("listens")
                joining.join(self._check)
            except BaseException:
                joining.close()
                raise
            self._small = joining
        if self._cause is not None:  # perhaps while its connections were not known yet
            raise BrokenGroupError(self._cause)
        return self._small

    def _joined(self) -> "ProcessGroupGloo":
        """Return the group once all shards are there."""
        if self._cause is not None:
            raise BrokenGroupError(self._cause)
        if self._group is None:
            from torch.distributed import PrefixStore, ProcessGroupGloo

            self._meet("here")
            options = ProcessGroupGloo._Options()
            place = {"interface": "lo"} if self._address is None else {"hostname": self._address}
            options._devices = [ProcessGroupGloo.create_device(**place)]
            options._timeout = _PATIENCE
            self._group = ProcessGroupGloo(PrefixStore("ranks", self._shared()), self.index, self.size, options)
        return self._group

    def _meet(self, what: str) -> None:
        """Wait until all shards say the same."""
        store = self._shared()
        store.set(f"{what}-{self.index}", "")
        all_shards = [f"{what}-{index}" for index in range(self.size)]
        while not store.check(all_shards):
            self._check()
            time.sleep(_LOOK_S)

    def _check(self) -> None:
        """Raise BrokenGroupError if a shard has broken the group, here or elsewhere."""
        if self._cause is not None or self._shared().check(["cause"]):
            raise self._broken(None)

    def _broken(self, error: Exception | None) -> BrokenGroupError:
        if isinstance(error, BrokenGroupError):
            return error
        store = self._shared()
        cause = store.get("cause").decode() if store.check(["cause"]) else f"a host of the slice ended: {error}"
        return BrokenGroupError(f"another shard of the call failed: {cause}")


NewStore = Callable[[Path], "Store"]
"""Returns the store of a group, which is known by a path."""


def file_store(path: Path) -> "Store":
    """Return a store in a file, for hosts of one machine."""
    from torch.distributed import FileStore

    return FileStore(str(path), -1)


@cache
def _options(reduction: Reduction) -> "AllreduceOptions":
    from torch.distributed import AllreduceOptions, ReduceOp

    options = AllreduceOptions()
    options.reduceOp = getattr(ReduceOp, reduction.upper())
    return options


class Groups:
    """The groups of a host, by key and shard. ``place`` is where it is itself, ``places`` where all hosts are.

    ``network_address`` is where other hosts reach it on a network, empty if it is on none.
    """

    def __init__(
        self, folder: str, new_store: NewStore, place: Place, places: Mapping[int, Place], network_address: str = ""
    ) -> None:
        self._folder = Path(folder)
        self._new_store = new_store
        self._place = place
        self._places = places
        self._network_address = network_address
        self._groups: dict[tuple[GroupKey, int], ShardGroup] = {}

    def group(self, key: GroupKey, index: int) -> ShardGroup:
        """Return the group of a shard. Earlier generations of its client are forgotten."""
        found = self._groups.get((key, index))
        if found is None:
            self.forget(key.client, before=key.generation)
            is_local = all(self._is_local(host) for host, _ in key.places)
            reached_at = self._network_address or ("" if is_local else self._place.address)
            address = reached_at.rpartition(":")[0].strip("[]") or None
            found = ShardGroup(self._folder, self._new_store, address, key, index, is_local=is_local)
            self._groups[key, index] = found
        return found

    def _is_local(self, host: int) -> bool:
        place = self._places.get(host)
        return place is not None and self._place.shares_memory_with(place)

    def forget(self, client: int, before: int | None = None) -> None:
        """Forget the groups of a client; those of a computation that runs stay until it ends."""
        self._groups = {
            (key, index): group
            for (key, index), group in self._groups.items()
            if key.client != client or (before is not None and key.generation >= before)
        }
