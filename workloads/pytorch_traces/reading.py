"""Files that PyTorch or our host library wrote: what they are, of which rank, and what they have in them."""

import gzip
import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from topologies.files import FileError, opened, shown_path
from workloads.chakra.wire import ChakraError
from workloads.pytorch_traces.device_profile import device_trace
from workloads.pytorch_traces.execution_trace import Described, read_execution_trace
from workloads.pytorch_traces.host_profile import host_trace
from workloads.pytorch_traces.profile import read_profile
from workloads.pytorch_traces.recording import SUFFIX as RECORDED
from workloads.pytorch_traces.recording import recorded_trace

SUFFIXES = (".json", ".json.gz", RECORDED)
MOST_BYTES = 1 << 30
"""Of one file, once unpacked. A document takes several times as much memory."""
_HEAD_BYTES = 64 << 10
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*(\d{1,6})')
_EXECUTION = re.compile(rb'\s*\{\s*"schema"\s*:\s*"\d')
_NUMBERS = re.compile(r"\d{1,6}")


def is_named_like_one(path: Path) -> bool:
    """Return whether a file may be a profile or a recording by its name."""
    return path.name.endswith(SUFFIXES)


class Identity(NamedTuple):
    """Of which rank a file is, and whether it is an execution trace of PyTorch."""

    rank: int
    is_execution_trace: bool


def identify(path: Path) -> Identity:
    """Return what a file is by its beginning. Its rank is the one named there, else the last number of its name.

    Raises ChakraError where the file has neither, or cannot be read.
    """
    head = _unpacked(path, _HEAD_BYTES)
    named = _RANK.search(head)
    numbers = _NUMBERS.findall(path.name.removesuffix(".gz").removesuffix(".json").removesuffix(RECORDED))
    if not named and not numbers:
        raise ChakraError(f"{shown_path(path)}: neither says its rank nor has it in its name")
    return Identity(int(named[1] if named else numbers[-1]), bool(_EXECUTION.match(head)))


def chakra_trace(
    path: Path, rank: int, known: Mapping[str, tuple[int, ...]], execution_trace: Path | None = None
) -> bytes:
    """Return the trace of a rank as Chakra has it.

    ``known`` has the ranks of process groups. An execution trace of the rank says what a profile does not.

    Raises ChakraError, which names the file, and the rank and the event where there are some.
    """
    if path.name.endswith(RECORDED):
        return recorded_trace(path, rank)
    document = _document(path, rank)
    if "traceEvents" not in document:
        raise ChakraError(f"{shown_path(path)}: rank {rank}: {_what_it_is(document)}")
    more = Described()
    try:
        if execution_trace is not None:
            more = read_execution_trace(_document(execution_trace, rank), execution_trace, rank)
        profile = read_profile(document, path, rank, more.arguments)
        groups = {**more.groups, **known}
        return device_trace(profile, groups) if profile.gpu else host_trace(profile, groups)
    except RecursionError as error:
        raise ChakraError(f"{shown_path(path)}: rank {rank}: its lists are nested too deeply") from error


def _document(path: Path, rank: int) -> dict[str, Any]:
    content = _unpacked(path, MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ChakraError(f"{shown_path(path)}: is larger than {MOST_BYTES:,} bytes; profile fewer steps")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ChakraError(f"{shown_path(path)}: rank {rank}: is truncated, or no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ChakraError(f"{shown_path(path)}: rank {rank}: is no profile of PyTorch")
    return document


def _what_it_is(document: Mapping[str, Any]) -> str:
    if "nodes" in document and "schema" in document:
        return "an execution trace has no durations; put the profiles (Kineto) of the same ranks beside it"
    return "is no profile of PyTorch: it has no traceEvents"


def _unpacked(path: Path, most_bytes: int) -> bytes:
    """Return so much of a file as it is, or unpacked."""
    try:
        with opened(path) as file:
            if not path.name.endswith(".gz"):
                return file.read(most_bytes)
            try:
                return gzip.GzipFile(fileobj=file).read(most_bytes)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise ChakraError(f"{shown_path(path)}: is truncated, or not packed by gzip: {error}") from error
    except FileError as error:
        raise ChakraError(str(error)) from error
