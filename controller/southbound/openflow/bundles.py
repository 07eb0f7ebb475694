"""Bundles: messages that a switch carries out all at once, or none of them.

OpenFlow 1.4 and later have them (1.5.1, section 6.9); to 1.3 the Open Networking Foundation has added them as an
experimenter's messages (extension 230), which Open vSwitch has too.
"""

import struct
from collections.abc import Iterable
from enum import IntEnum

from controller.southbound.openflow.channel_errors import RefusedError
from controller.southbound.openflow.control_messages import ControlType, control_message
from controller.southbound.openflow.error_words import BAD_REQUEST, BUNDLE_FAILED, ONF, ONF_BUNDLES
from controller.southbound.openflow.messages import HEADER, LONGEST_MESSAGE_BYTES, Version

_CONTROL = struct.Struct("!IHH")
"""Bundle id, what to do, flags."""
_ADD = struct.Struct("!I2xH")
"""Bundle id, flags; the message follows."""
_ONF = struct.Struct("!II")
"""The experimenter, and the type of its message: ``ONF_BUNDLES`` to control, one more to add."""
_ATOMIC_AND_ORDERED = 0b11
_BAD_TYPE, _BAD_EXPERIMENTER, _BAD_EXPERIMENTER_TYPE = 1, 3, 4
_BUNDLE_BAD_TYPE, _BUNDLE_BAD_FLAGS = 6, 7


class BundleStep(IntEnum):
    """What a switch is asked to do with a bundle."""

    OPEN = 0
    COMMIT = 4
    DISCARD = 6


class Bundle:
    """The messages of one bundle, by its id, for a switch of this version."""

    def __init__(self, version: int, bundle_id: int) -> None:
        self._version = version
        self._id = bundle_id
        self._is_onf = version == Version.OPENFLOW_1_3

    @property
    def inner_at(self) -> int:
        """Where the messages of ``adding`` have the message that they add."""
        return HEADER.size + (_ONF.size if self._is_onf else 0) + _ADD.size

    def step(self, step: BundleStep) -> bytes:
        """Ask for a step."""
        return self._message(
            ControlType.BUNDLE_CONTROL, ONF_BUNDLES, _CONTROL.pack(self._id, step, _ATOMIC_AND_ORDERED)
        )

    def adding(self, messages: Iterable[bytes]) -> list[bytes]:
        """Return the messages that add these to the bundle.

        Raises:
            ValueError: One is so long that it has no room in another.
        """
        head = _ADD.pack(self._id, _ATOMIC_AND_ORDERED)
        return [self._message(ControlType.BUNDLE_ADD_MESSAGE, ONF_BUNDLES + 1, head + each) for each in messages]

    def _message(self, kind: ControlType, onf_kind: int, body: bytes) -> bytes:
        if self._is_onf:
            kind, body = ControlType.EXPERIMENTER, _ONF.pack(ONF, onf_kind) + body
        if HEADER.size + len(body) > LONGEST_MESSAGE_BYTES:
            raise ValueError(f"a message of {len(body):,} bytes has no room in a bundle")
        return control_message(self._version, kind, body)


def has_no_bundles(refused: RefusedError) -> bool:
    """Whether a switch that refuses to open a bundle does so since it has none as ours."""
    return any(
        (each.kind == BAD_REQUEST and each.code in (_BAD_TYPE, _BAD_EXPERIMENTER, _BAD_EXPERIMENTER_TYPE))
        or (each.kind == BUNDLE_FAILED and each.code in (_BUNDLE_BAD_TYPE, _BUNDLE_BAD_FLAGS))
        for each in refused.refusals.values()
    )
