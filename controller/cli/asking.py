"""How commands that ask a running controller find it, and what becomes of an answer that fails."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from controller.cli.exits import fail, refuse
from controller.config import check_host_port
from controller.operations.client import Operations, OperationsError, UnknownNameError


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
    """A message as JSON has it, its keys as in the wire format."""
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
