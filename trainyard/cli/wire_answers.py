"""Answers made of a controller's messages: what programs get has the keys of the wire format, with their units."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from google.protobuf.message import Message
from rich.console import RenderableType
from rich.text import Text

from controller.api.operations.methods import Listing
from trainyard.cli.answers import Answer


def listing_answer(
    name: str,
    listing: Listing[Any],
    states: Sequence[Any],
    table: Callable[[Sequence[Any]], RenderableType],
    empty: str,
) -> Answer:
    """Return the answer that lists states.

    Args:
        name: The key under which a document has the list.
        listing: What was listed.
        states: What the controller has answered.
        table: Makes the table of people.
        empty: What people read instead where there are none: why.
    """
    objects = [message_object(state) for state in states]
    columns = tuple(_columns(listing.state.DESCRIPTOR))
    return Answer({name: objects}, objects, lambda: table(states) if states else Text(empty), columns)


def message_object(message: Message) -> dict[str, Any]:
    """Return a message for JSON, with the keys of the wire format and without absent fields.

    Unlike Protobuf's own JSON, 64-bit integers are numbers: jq compares strings letter by letter.
    """
    return {
        field.name: _value(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _value(field: Any, value: Any) -> Any:
    if field.is_repeated:
        return [_single(field, each) for each in value]
    return _single(field, value)


def _single(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return message_object(value)
    return value if field.enum_type is None else field.enum_type.values_by_number[value].name


def _columns(descriptor: Any, prefix: str = "") -> Iterator[str]:
    """Yield the columns of CSV for messages of a type, also those of fields that are absent."""
    for field in descriptor.fields:
        if field.message_type is not None and not field.is_repeated:
            yield from _columns(field.message_type, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"
