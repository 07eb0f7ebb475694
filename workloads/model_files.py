"""Files of models that the jobs of a scenario name: each is read, checked, and put in the place of its name."""

import hashlib
from dataclasses import replace
from pathlib import Path

from topologies.documents import Document, DocumentError, read_document
from topologies.files import FileError, shown_path
from topologies.problems import Location, as_list, as_mapping, place
from workloads.described.catalogue import model_of
from workloads.model_workload import MODEL_FILES


def with_model_files(document: Document) -> Document:
    """Return the document with the contents of the model files that its jobs name, relative to its own file.

    Raises:
        DocumentError: A file cannot be read, or something is wrong with the model in it: a line for each problem, with
            the model's file and the place of the layer.
    """
    found: dict[str, Document] = {}
    messages: list[str] = []
    for number, name in _named_files(document.contents):
        if name in found:
            continue
        try:
            found[name] = read_document(document.path.parent / name)
            model_of(found[name])
        except DocumentError as error:
            if isinstance(error.__cause__, FileError):
                where = place(_location(number), document.contents)
                messages.append(f"{shown_path(document.path)}: {where}: expected a model or a file of one; {error}")
            else:
                messages += error.messages
    if messages:
        raise DocumentError(tuple(messages))
    if not found:
        return document
    contents = dict(document.contents)
    contents["jobs"] = [_with_models(job, found) for job in contents["jobs"]]
    hashes = " ".join((document.sha256, *(each.sha256 for each in found.values())))
    return replace(document, contents=contents, sha256=hashlib.sha256(hashes.encode()).hexdigest())


def _named_files(contents: object) -> list[tuple[int, str]]:
    jobs = enumerate(as_list(as_mapping(contents).get("jobs")))
    named = ((number, as_mapping(as_mapping(job).get("workload")).get("model")) for number, job in jobs)
    return [(number, name) for number, name in named if isinstance(name, str) and Path(name).suffix in MODEL_FILES]


def _with_models(job: object, found: dict[str, Document]) -> object:
    workload = as_mapping(as_mapping(job).get("workload"))
    name = workload.get("model")
    if not isinstance(name, str) or name not in found:
        return job
    return {**as_mapping(job), "workload": {**workload, "model": found[name].contents}}


def _location(job: int) -> Location:
    return ("jobs", job, "workload", "model")
