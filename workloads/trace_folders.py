"""Folders of execution traces that the jobs of a scenario name: they are relative to its own file."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from topologies.documents import Document
from topologies.files import FileError, read_bytes
from topologies.problems import as_list, as_mapping
from workloads.chakra.folders import MOST_BYTES, trace_files
from workloads.chakra.wire import ChakraError

_KEYS = ("trace", "groups")


def with_trace_folders(document: Document) -> Document:
    """Return the document with whole paths of the traces that its jobs play; its hash depends on what is in them.

    A folder that cannot be used is a problem of its job, which validation finds.
    """
    jobs = as_list(as_mapping(document.contents).get("jobs"))
    moved = [_with_whole_paths(job, document.path.parent) for job in jobs]
    if moved == list(jobs):
        return document
    hashed = hashlib.sha256(document.sha256.encode())
    for job in moved:
        workload = as_mapping(as_mapping(job).get("workload"))
        if workload.get("type") == "chakra":
            for path in _files(workload):
                try:
                    hashed.update(hashlib.sha256(read_bytes(path, MOST_BYTES)).digest())
                except FileError:
                    continue
    return replace(document, contents={**document.contents, "jobs": moved}, sha256=hashed.hexdigest())


def _with_whole_paths(job: Any, folder: Path) -> Any:
    workload = as_mapping(as_mapping(job).get("workload"))
    named = {key: workload[key] for key in _KEYS if isinstance(workload.get(key), str) and workload[key]}
    if workload.get("type") != "chakra" or not named:
        return job
    whole = {key: str(folder.absolute() / name) for key, name in named.items()}
    return {**as_mapping(job), "workload": {**workload, **whole}}


def _files(workload: Any) -> list[Path]:
    files = [Path(workload["groups"])] if isinstance(workload.get("groups"), str) else []
    try:
        traces = trace_files(Path(str(workload.get("trace"))))
        return [*(path for each in traces for path in each.paths), *files]
    except (ChakraError, OSError):
        return files
