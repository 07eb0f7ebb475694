"""How commands that ask a running controller find it, and what becomes of an answer that fails."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from google.protobuf.message import Message

from controller.api.operations.client import Operations, OperationsError, UnknownNameError
from controller.config import check_host_port
from trainyard.cli.exits import fail, refuse


@contextmanager
def asked(addresses: Sequence[str]) -> Iterator[Operations]:
    """The controller at whichever address answers; ends the command where none does, or has not what was asked."""
    wrong = []
    for address in addresses:
        try:
            check_host_port(address)
        except ValueError as error:
            wrong.append(f"--controller {address!r}: {error}")
    if wrong:
        refuse(wrong)
    try:
        with Operations(addresses) as operations:
            yield operations
    except UnknownNameError as error:
        refuse((str(error),))
    except OperationsError as error:
        fail(str(error))


def message_object(message: Message) -> dict[str, Any]:
    """A message for JSON, its keys as in the wire format. What is absent is left out; wide numbers are numbers too.

    Protobuf's own JSON has 64-bit integers as strings, which jq compares letter by letter.
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
