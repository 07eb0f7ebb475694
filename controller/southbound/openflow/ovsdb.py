"""A connection to the database of an Open vSwitch: OVSDB (RFC 7047), as far as its settings need it.

Messages are JSON objects one after the other, without anything between them. The server may ask for an echo at any
time; it gets one while an answer is awaited.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from controller.access.bound_socket import host_and_port
from controller.errors import DaemonError
from topologies.printable import printable

UNIX, TCP = "unix:", "tcp:"
NOT_OVSDB = "it answers with something else than OVSDB"

_DATABASE = "Open_vSwitch"
_ANSWERS_WITHIN_S = 5.0
_LONGEST_ANSWER_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 16
_DECODER = json.JSONDecoder()


class OvsdbError(DaemonError):
    """The database of an Open vSwitch does not answer, or refuses; the text says why, without the address."""


class Ovsdb:
    """A connection to the database of an Open vSwitch, for one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._held = b""
        self._id = 0

    async def transact(self, *operations: dict[str, Any]) -> list[dict[str, Any]]:
        """Carry operations out, all or none (RFC 7047, section 5.2); return the result of each.

        Raises:
            OvsdbError: The database refuses, ends the connection, or does not answer within five seconds.
        """
        self._id += 1
        self._send({"method": "transact", "params": [_DATABASE, *operations], "id": self._id})
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN_S):
                await self._writer.drain()
                answer = await self._answer()
        except TimeoutError:
            raise OvsdbError(f"no answer within {_ANSWERS_WITHIN_S:g} s") from None
        except OSError as error:
            raise OvsdbError(f"the connection is lost: {error.strerror or error}") from error
        return _results(answer)

    async def _answer(self) -> dict[str, Any]:
        """Return the answer to the last request; answer the server's own requests meanwhile."""
        while True:
            message = await self._message()
            if message.get("method") == "echo":
                self._send({"result": message.get("params"), "error": None, "id": message.get("id")})
            elif "method" not in message and message.get("id") == self._id:
                return message

    async def _message(self) -> dict[str, Any]:
        while True:
            text = self._held.decode(errors="replace").lstrip()
            if text:
                try:
                    message, end = _DECODER.raw_decode(text)
                except json.JSONDecodeError:
                    pass  # not all of it has come
                except RecursionError:
                    raise OvsdbError(NOT_OVSDB) from None
                else:
                    if not isinstance(message, dict):
                        raise OvsdbError(NOT_OVSDB)
                    self._held = text[end:].encode()
                    return message
            if text[:1] not in ("", "{") or len(self._held) > _LONGEST_ANSWER_BYTES:
                raise OvsdbError(NOT_OVSDB)
            octets = await self._reader.read(_CHUNK_BYTES)
            if not octets:
                raise OvsdbError("it has closed the connection")
            self._held += octets

    def _send(self, message: dict[str, Any]) -> None:
        self._writer.write(json.dumps(message).encode())


@asynccontextmanager
async def connected_ovsdb(address: str) -> AsyncIterator[Ovsdb]:
    """Connect to a database for as long as the context lasts.

    Args:
        address: ``unix:PATH`` or ``tcp:HOST:PORT``.

    Raises:
        OvsdbError: Nothing answers there.
    """
    try:
        async with asyncio.timeout(_ANSWERS_WITHIN_S):
            if address.startswith(UNIX):
                reader, writer = await asyncio.open_unix_connection(address.removeprefix(UNIX))
            else:
                reader, writer = await asyncio.open_connection(*host_and_port(address.removeprefix(TCP)))
    except TimeoutError:
        raise OvsdbError(f"no connection within {_ANSWERS_WITHIN_S:g} s") from None
    except OSError as error:
        raise OvsdbError(f"no connection: {error.strerror or error}") from error
    try:
        yield Ovsdb(reader, writer)
    finally:
        writer.close()


def values(column: Any) -> list[Any]:
    """Return the values of a column that is a set; a set of one value comes as that value (section 5.1)."""
    if isinstance(column, list) and len(column) == 2 and column[0] == "set":
        return list(column[1])
    return [column]


def pairs(column: Any) -> dict[Any, Any]:
    """Return a column that is a map. Raises OvsdbError where it is something else."""
    if isinstance(column, list) and len(column) == 2 and column[0] == "map":
        return dict(column[1])
    raise OvsdbError(NOT_OVSDB)


def _results(answer: dict[str, Any]) -> list[dict[str, Any]]:
    if answer.get("error"):
        raise OvsdbError(f"it refuses: {printable(_in_words(answer['error']))}")
    results: Sequence[Any] = answer.get("result") or ()
    for result in results:
        if isinstance(result, dict) and result.get("error"):
            raise OvsdbError(f"it refuses: {printable(_in_words(result))}")
    return [result for result in results if isinstance(result, dict)]


def _in_words(error: Any) -> str:
    if isinstance(error, dict):
        return " ".join(str(error[key]) for key in ("error", "details") if error.get(key))
    return str(error)
