"""Folders of traces: a file for each rank.

They are Chakra's, named like ``anything.0.et``, ``anything.1.et`` and so on; or profiles of PyTorch (``.json`` or
``.json.gz``), which say their ranks or have them in their names, with execution traces beside them or without; or
recordings of our host library (``.jsonl``).
"""

import gc
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from topologies.files import FileError, read_bytes, read_text, shown_path
from workloads.chakra.joining import Trace, joined
from workloads.chakra.rank_trace import Communicators, Reading, read_rank
from workloads.chakra.wire import ChakraError
from workloads.pytorch_traces.reading import chakra_trace, identify, is_named_like_one

MOST_BYTES = 2 << 30
"""Of one file."""
MOST_RANKS = 65_536
_NAME = re.compile(r"(.*)\.(\d{1,6})\.et")


@dataclass(frozen=True, slots=True)
class RankFiles:
    """The trace of a rank, and the execution trace of PyTorch that completes it, if there is one."""

    trace: Path
    execution_trace: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them."""
        return (self.trace,) if self.execution_trace is None else (self.trace, self.execution_trace)


def read_trace(folder: Path, reading: Reading | None = None, groups: Path | None = None) -> Trace:
    """Read the traces of all ranks in a folder.

    ``groups`` is a JSON file with the ranks of communicators by name, for traces that do not describe their own.

    Raises:
        ChakraError: A file or the folder cannot be used, or ranks disagree. The message names file, rank and node.
    """
    reading = reading or Reading()
    try:
        files = trace_files(folder)
        statuses = [path.stat() for each in files for path in each.paths]
        stamps = tuple((status.st_mtime_ns, status.st_size) for status in statuses)
        text = "{}" if groups is None else read_text(groups)
    except OSError as error:
        raise ChakraError(f"{shown_path(folder)}: cannot be read: {error.strerror}") from error
    except FileError as error:
        raise ChakraError(str(error)) from error
    return _read(files, stamps, reading, tuple(sorted(_groups(text, groups).items())))


def trace_files(folder: Path) -> tuple[RankFiles, ...]:
    """Return the files of a folder by rank. Raises ChakraError where some are missing, or are of a second trace."""
    beside: dict[int, Path] = {}
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
        for path in filter(is_named_like_one, paths):
            rank, is_execution_trace = identify(path)
            alike = beside if is_execution_trace else found
            if rank in alike:
                raise ChakraError(f"{shown_path(path)}: is of rank {rank}, as {alike[rank].name!r} is")
            alike[rank] = path
        if not found:
            found, beside = beside, found  # reading says what alone they lack
    if not found:
        raise ChakraError(f"{shown_path(folder)}: has no files that are named like trace.0.et or trace.0.json")
    if len(found) > MOST_RANKS:
        raise ChakraError(f"{shown_path(folder)}: has {len(found):,} ranks, more than {MOST_RANKS:,}")
    missing = next((rank for rank in range(len(found)) if rank not in found), None)
    if missing is not None:
        raise ChakraError(f"{shown_path(folder)}: has {len(found)} traces, but none of rank {missing}")
    return tuple(RankFiles(found[rank], beside.get(rank)) for rank in range(len(found)))


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
    files: tuple[RankFiles, ...],
    _stamps: tuple[tuple[int, int], ...],
    reading: Reading,
    groups: tuple[tuple[str, tuple[int, ...]], ...],
) -> Trace:
    """Read files; once while they stay as they are."""
    described = dict(groups)
    was_enabled = gc.isenabled()
    # Millions of small objects without a circle; looking for one takes a fifth of the time.
    gc.disable()
    try:
        return joined(
            [
                read_rank(_content(each, rank, described), each.trace, rank, reading, described)
                for rank, each in enumerate(files)
            ]
        )
    finally:
        if was_enabled:
            gc.enable()


def _content(files: RankFiles, rank: int, groups: Communicators) -> bytes:
    """Return the trace of a rank as Chakra has it."""
    if not _NAME.fullmatch(files.trace.name):
        return chakra_trace(files.trace, rank, groups, files.execution_trace)
    try:
        return read_bytes(files.trace, MOST_BYTES)
    except FileError as error:
        raise ChakraError(str(error)) from error
