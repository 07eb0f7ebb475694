"""Errors of switches in words, with the names that the specification gives their types and codes."""

import struct
from functools import cache, lru_cache
from types import ModuleType

from controller.errors import DaemonError
from controller.southbound.openflow.channel_errors import Misbehaviour, MisbehaviourError, Refusal
from controller.southbound.openflow.messages import HEADER, Version
from topologies.printable import printable

_ERROR = struct.Struct("!HH")
_EXPERIMENTER_ERROR = struct.Struct("!HHI")
HELLO_FAILED, BAD_REQUEST, ROLE_REQUEST_FAILED, BUNDLE_FAILED, EXPERIMENTER = 0, 1, 11, 17, 0xFFFF
"""Types of errors."""
ONF = 0x4F4E4600
"""The Open Networking Foundation, as an experimenter; ``ONF_BUNDLES`` is the first number of its bundles for 1.3."""
ONF_BUNDLES = 2300


class MissingLibraryError(DaemonError):
    """The message library for OpenFlow is not installed; the message names the extra that brings it."""


def load_names() -> None:
    """Import the names of errors, which takes a third of a second; to be called before switches connect.

    Raises:
        MissingLibraryError: os-ken is not installed.
    """
    for version in Version:
        constants(version)


@cache
def constants(version: int) -> ModuleType:
    """The constants of a version.

    Raises:
        MissingLibraryError: os-ken is not installed.
    """
    try:
        from os_ken.ofproto import ofproto_v1_3, ofproto_v1_5
    except ImportError as error:
        raise MissingLibraryError(f"OpenFlow needs os-ken: pip install 'trainyard[openflow]' ({error})") from error
    found: ModuleType = ofproto_v1_3 if version == Version.OPENFLOW_1_3 else ofproto_v1_5
    return found


def refusal_of(message: bytes) -> Refusal:
    """Return what an error message says.

    Raises:
        MisbehaviourError: It is too short to say anything.
    """
    if len(message) < HEADER.size + _ERROR.size:
        raise MisbehaviourError(Misbehaviour.GARBAGE, f"an error message of {len(message)} bytes")
    version = message[0]
    kind, code = _ERROR.unpack_from(message, HEADER.size)
    if kind == EXPERIMENTER and len(message) >= HEADER.size + _EXPERIMENTER_ERROR.size:
        experimenter = _EXPERIMENTER_ERROR.unpack_from(message, HEADER.size)[2]
        if experimenter != ONF or not ONF_BUNDLES <= code < ONF_BUNDLES + 16:
            return Refusal(kind, code, f"error {code} of the experimenter {experimenter:#010x}")
        kind, code, version = BUNDLE_FAILED, code - ONF_BUNDLES, Version.OPENFLOW_1_5
    words = _words(version, kind, code)
    if kind == HELLO_FAILED and (text := message[HEADER.size + _ERROR.size :]):
        words += f": {printable(text.decode('ascii', 'replace').rstrip(chr(0)), 200)}"
    return Refusal(kind, code, words)


@lru_cache(maxsize=1_000)
def _words(version: int, kind: int, code: int) -> str:
    names = constants(version)
    kind_name, code_name = names.ofp_error_type_to_str(kind), names.ofp_error_code_to_str(kind, code)
    if not kind_name.startswith("OFPET_"):
        return f"error of type {kind}, code {code}"
    words = _spoken(kind_name)
    if not code_name.startswith("OFP"):
        return f"{words}: code {code} ({_bare(kind_name)})"
    return f"{words}: {_spoken(code_name)} ({_bare(code_name)})"


def _bare(name: str) -> str:
    """OFPFMFC_TABLE_FULL(1) without its number."""
    return name.partition("(")[0]


def _spoken(name: str) -> str:
    """The words in a name: "table full" in OFPFMFC_TABLE_FULL(1)."""
    return _bare(name).partition("_")[2].replace("_", " ").lower()
