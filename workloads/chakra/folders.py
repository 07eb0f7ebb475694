"""Folders of traces: a file for each rank.

They are Chakra's, named like ``anything.0.et``, ``anything.1.et`` and so on; or profiles of PyTorch (``.json`` or
``.json.gz``), which say their ranks or have them in their names, with execution traces beside them or without; or
recordings of our host library (``.jsonl``).
"""

import gc
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from topologies.files import FileError, read_bytes, read_text, shown_path
from workloads.chakra.joining import Trace, joined
from workloads.chakra.rank_trace import Communicators, Reading, read_rank
from workloads.chakra.wire import ChakraError
from workloads.pytorch_traces.reading import chakra_trace, is_execution_trace, is_named_like_one, rank_of

MOST_BYTES = 2 << 30
"""Of one file."""
MOST_RANKS = 65_536
_NAME = re.compile(r"(.*)\.(\d{1,6})\.et")


def read_trace(folder: Path, reading: Reading | None = None, groups: Path | None = None) -> Trace:
    """Read the traces of all ranks in a folder.

    ``groups`` is a JSON file with the ranks of communicators by name, for traces that do not describe their own.

    Raises:
        ChakraError: A file or the folder cannot be used, or ranks disagree. The message names file, rank and node.
    """
    reading = reading or Reading()
    try:
        paths = trace_files(folder)
        stamps = tuple((status.st_mtime_ns, status.st_size) for status in (path.stat() for path in paths))
        text = "{}" if groups is None else read_text(groups)
    except OSError as error:
        raise ChakraError(f"{shown_path(folder)}: cannot be read: {error.strerror}") from error
    except FileError as error:
        raise ChakraError(str(error)) from error
    return _read(paths, stamps, reading, tuple(sorted(_groups(text, groups).items())))


def trace_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder by rank, and behind them the execution traces that complete them.

    Raises ChakraError where some are missing, or are of a second trace.
    """
    beside: tuple[Path, ...] = ()
    found: dict[int, Path] = {}
    prefixes: set[str] = set()
    paths = sorted(folder.iterdir())
    for path in paths:
        named = _NAME.fullmatch(path.name)
        if named:
            prefixes.add(named[1])
            if int(named[2]) in found or len(prefixes) > 1:
                raise ChakraError(f"{shown_path(folder)}: expected one trace; {path.name!r} is of a second one")
            found[int(named[2])] = path
    if not found:
        named_so = [path for path in paths if is_named_like_one(path)]
        profiles = [path for path in named_so if not is_execution_trace(path)]
        found = _by_rank(profiles or named_so)
        beside = tuple(path for path in named_so if profiles and path not in profiles)
    if not found:
        raise ChakraError(f"{shown_path(folder)}: has no files that are named like trace.0.et or trace.0.json")
    if len(found) > MOST_RANKS:
        raise ChakraError(f"{shown_path(folder)}: has {len(found):,} ranks, more than {MOST_RANKS:,}")
    missing = next((rank for rank in range(len(found)) if rank not in found), None)
    if missing is not None:
        raise ChakraError(f"{shown_path(folder)}: has {len(found)} traces, but none of rank {missing}")
    return (*(found[rank] for rank in range(len(found))), *beside)


def _by_rank(paths: Iterable[Path]) -> dict[int, Path]:
    """Return files by rank. Raises ChakraError where one has none, or two have the same."""
    found: dict[int, Path] = {}
    for path in paths:
        rank = rank_of(path)
        if rank is None:
            raise ChakraError(f"{shown_path(path)}: neither says its rank nor has it in its name")
        if rank in found:
            raise ChakraError(f"{shown_path(path)}: is of rank {rank}, as {found[rank].name!r} is")
        found[rank] = path
    return found


def forget_traces() -> None:
    """Forget what was read, so that the next reading reads files again."""
    _read.cache_clear()


def _groups(text: str, path: Path | None) -> Communicators:
    try:
        document = json.loads(text)
        groups = {str(name): tuple(ranks) for name, ranks in document.items()}
        if all(type(rank) is int and rank >= 0 for ranks in groups.values() for rank in ranks):
            return groups
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    assert path is not None
    raise ChakraError(f"{shown_path(path)}: expected lists of ranks by the names of communicators, in JSON")


@lru_cache(maxsize=4)
def _read(
    paths: tuple[Path, ...],
    _stamps: tuple[tuple[int, int], ...],
    reading: Reading,
    groups: tuple[tuple[str, tuple[int, ...]], ...],
) -> Trace:
    """Read files; once while they stay as they are."""
    described = dict(groups)
    is_chakra = _NAME.fullmatch(paths[0].name) is not None
    was_enabled = gc.isenabled()
    # Millions of small objects without a circle; looking for one takes a fifth of the time.
    gc.disable()
    try:
        beside = _by_rank(path for path in paths if not is_chakra and is_execution_trace(path))
        if len(beside) == len(paths):
            beside = {}
        files = [path for path in paths if path not in beside.values()]
        ranks = [
            read_rank(
                read_bytes(path, MOST_BYTES) if is_chakra else chakra_trace(path, rank, described, beside.get(rank)),
                path,
                rank,
                reading,
                described,
            )
            for rank, path in enumerate(files)
        ]
        return joined(ranks)
    except FileError as error:
        raise ChakraError(str(error)) from error
    finally:
        if was_enabled:
            gc.enable()
