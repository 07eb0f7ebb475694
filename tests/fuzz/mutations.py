"""Mutations of documents and of bytes, drawn from a seed."""

import copy
import json
from random import Random
from typing import Any

import yaml

from tests.fuzz import hostile

_MOST_BYTES = 1 << 20
_MOST_COPIES = 1000


def mutated_bytes(content: bytes, draws: Random) -> bytes:
    """Return content that differs from this in some places."""
    changed = bytearray(content)
    for _ in range(draws.choice((1, 1, 2, 4, 16))):
        start = draws.randrange(len(changed) + 1)
        end = min(len(changed), start + draws.choice((0, 1, 1, 4, 32, 256)))
        match draws.randrange(6):
            case 0:
                changed[start:end] = b""
            case 1:
                changed[start:start] = draws.choice(hostile.BYTES)
            case 2:
                changed[start:end] = draws.choice(hostile.BYTES)
            case 3:
                changed[start:start] = changed[start:end] * draws.choice((1, 2, _MOST_COPIES))
            case 4 if start < len(changed):
                changed[start] ^= 1 << draws.randrange(8)
            case _ if draws.random() < 0.2:
                del changed[start:]
    return bytes(changed[:_MOST_BYTES])


def mutated_lines(content: bytes, draws: Random) -> bytes:
    """Return content in which lines, or words of lines, are gone, doubled, exchanged or hostile."""
    lines = content.split(b"\n")
    for _ in range(draws.choice((1, 1, 2, 4))):
        place, other = draws.randrange(len(lines)), draws.randrange(len(lines))
        match draws.randrange(5):
            case 0:
                lines.insert(place, lines[other])
            case 1 if len(lines) > 1:
                del lines[place]
            case 2:
                lines[place], lines[other] = lines[other], lines[place]
            case _:
                separator = b"," if b"," in lines[place] else b" "
                words = lines[place].split(separator)
                words[draws.randrange(len(words))] = draws.choice(
                    (
                        *hostile.BYTES,
                        str(draws.choice(hostile.NUMBERS)).encode(),
                        repr(draws.choice(hostile.FLOATS)).encode(),
                    )
                )
                lines[place] = separator.join(words)
    return b"\n".join(lines)[:_MOST_BYTES]


def mutated_document(document: Any, draws: Random) -> Any:
    """Return a copy of a document of mappings and lists in which some values are gone, doubled or hostile."""
    document = copy.deepcopy(document)
    for _ in range(draws.choice((1, 1, 1, 2, 5))):
        places = list(_places(document))
        if not places:
            return hostile.value(draws)
        holder, key = draws.choice(places)
        match draws.randrange(7):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[draws.choice(hostile.TEXTS)] = hostile.value(draws)
            case 1:
                holder.extend(copy.deepcopy(holder[key : key + 1]) * draws.choice((1, 2, 50)))
            case 2:
                other, its = draws.choice(places)
                if its in other if isinstance(other, dict) else its < len(other):
                    holder[key] = copy.deepcopy(other[its])
            case _:
                holder[key] = hostile.value(draws)
    return document


def as_yaml(document: Any) -> bytes:
    """Return a document as YAML."""
    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False).encode("utf-8", "surrogatepass")


def as_json(document: Any) -> bytes:
    """Return a document as JSON, with Python's words for what is infinite or no number."""
    return json.dumps(document).encode()


def _places(document: Any) -> Any:
    if isinstance(document, dict):
        pairs: Any = document.items()
    elif isinstance(document, list):
        pairs = enumerate(document)
    else:
        return
    for key, item in pairs:
        yield document, key
        yield from _places(item)
