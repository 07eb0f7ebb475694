"""Changes of a document that make it wrong."""

from typing import Any

import yaml

Document = dict[str, Any]


def change(document: Document, path: tuple[str | int, ...], value: object) -> str:
    here: Any = document
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return yaml.safe_dump(document)
