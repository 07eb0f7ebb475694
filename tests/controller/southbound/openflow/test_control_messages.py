"""The messages by which a connection lives, as another implementation reads and writes them."""

import struct
import sys
from contextlib import suppress
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.southbound.openflow.bundles import Bundle, BundleStep
from controller.southbound.openflow.channel_errors import MisbehaviourError
from controller.southbound.openflow.control_messages import (
    ControlType,
    Role,
    control_message,
    datapath_of,
    hello,
    negotiated_version,
    role_of,
    role_request,
    tell_all,
    tell_roles,
)
from controller.southbound.openflow.error_words import MissingLibraryError, constants, refusal_of
from controller.southbound.openflow.listener import OpenFlowListener

pytestmark = pytest.mark.skipif(find_spec("os_ken") is None, reason="os-ken, the extra openflow, is not installed")

VERSIONS = pytest.mark.parametrize("version", [4, 6])
_U64 = st.integers(0, (1 << 64) - 1)


def _parser(version: int) -> ModuleType:
    from os_ken.ofproto import ofproto_v1_3_parser, ofproto_v1_5_parser

    return ofproto_v1_3_parser if version == 4 else ofproto_v1_5_parser


class _Datapath:
    """What os-ken's messages need of a connection."""

    def __init__(self, version: int) -> None:
        self.ofproto, self.ofproto_parser = constants(version), _parser(version)


def _read(message: bytes) -> Any:
    version, kind, length, xid = struct.unpack_from("!BBHI", message)
    assert length == len(message)
    return _parser(version).msg_parser(_Datapath(version), version, kind, length, xid, message)


def _written(message: Any) -> bytes:
    message.set_xid(0)
    message.serialize()
    return bytes(message.buf)


def test_our_hello_offers_both_versions() -> None:
    (element,) = _read(hello()).elements
    assert element.versions == [4, 6]


@given(st.sets(st.integers(1, 31), min_size=1))
def test_the_highest_common_version_is_chosen(offered: set[int]) -> None:
    body = struct.pack("!HHI", 1, 8, sum(1 << version for version in offered))
    message = control_message(max(offered), ControlType.HELLO, body)
    common = offered & {4, 6}
    if common:
        assert negotiated_version(message) == max(common)
    else:
        with pytest.raises(MisbehaviourError, match=r"1\.3 or 1\.5 is needed"):
            negotiated_version(message)


@given(st.binary(max_size=40), st.integers(1, 127))
def test_any_hello_gives_a_version_or_is_refused(body: bytes, version: int) -> None:
    with suppress(MisbehaviourError):
        assert negotiated_version(control_message(version, ControlType.HELLO, body)) in (4, 6)


@VERSIONS
@given(generation_id=_U64)
def test_role_requests_are_those_of_the_other_implementation(version: int, generation_id: int) -> None:
    parser, ofproto = _parser(version), constants(version)
    more = (0,) if version == 6 else ()
    theirs = _written(parser.OFPRoleRequest(_Datapath(version), ofproto.OFPCR_ROLE_MASTER, *more, generation_id))
    assert role_request(version, Role.MASTER, generation_id) == theirs
    assert role_of(theirs) is Role.MASTER


@VERSIONS
def test_we_ask_for_whole_frames(version: int) -> None:
    ofproto = constants(version)
    assert tell_all(version) == _written(_parser(version).OFPSetConfig(_Datapath(version), 0, ofproto.OFPCML_NO_BUFFER))


def test_we_ask_to_be_told_roles() -> None:
    parser, ofproto = _parser(6), constants(6)
    reasons = 1 << ofproto.OFPCRR_MASTER_REQUEST | 1 << ofproto.OFPCRR_CONFIG
    kinds = ofproto.OFPACPT_ROLE_STATUS_SLAVE, ofproto.OFPACPT_ROLE_STATUS_MASTER
    properties = [parser.OFPAsyncConfigPropReasons(kind, 8, reasons) for kind in kinds]
    assert tell_roles() == _written(parser.OFPSetAsync(_Datapath(6), properties))


@VERSIONS
@given(datapath_id=_U64, auxiliary_id=st.integers(0, 255))
def test_features_tell_the_datapath(version: int, datapath_id: int, auxiliary_id: int) -> None:
    body = struct.pack("!QIBB2xII", datapath_id, 256, 254, auxiliary_id, 0x4F, 0)
    message = control_message(version, ControlType.FEATURES_REPLY, body)
    theirs = _read(message)
    assert datapath_of(message) == (theirs.datapath_id, theirs.auxiliary_id) == (datapath_id, auxiliary_id)


@pytest.mark.parametrize("step", list(BundleStep))
def test_bundles_of_1_5_are_those_of_the_other_implementation(step: BundleStep) -> None:
    parser, datapath = _parser(6), _Datapath(6)
    assert Bundle(6, 9).step(step) == _written(parser.OFPBundleCtrlMsg(datapath, 9, step, 3, []))
    barrier = parser.OFPBarrierRequest(datapath)
    (adding,) = Bundle(6, 9).adding([_written(barrier)])
    assert adding == _written(parser.OFPBundleAddMsg(datapath, 9, 3, barrier, []))


def test_bundles_of_1_3_are_those_of_the_other_implementation() -> None:
    parser, datapath = _parser(4), _Datapath(4)
    assert Bundle(4, 9).step(BundleStep.OPEN) == _written(parser.ONFBundleCtrlMsg(datapath, 9, 0, 3, []))
    barrier = parser.OFPBarrierRequest(datapath)
    (adding,) = Bundle(4, 9).adding([_written(barrier)])
    assert adding == _written(parser.ONFBundleAddMsg(datapath, 9, 3, barrier, []))


def test_a_message_too_long_for_a_bundle_is_refused() -> None:
    with pytest.raises(ValueError, match="has no room in a bundle"):
        Bundle(6, 1).adding([bytes(65_530)])


@VERSIONS
@given(kind=st.integers(0, 20) | st.just(0xFFFF), code=st.integers(0, 0xFFFF), data=st.binary(max_size=12))
def test_every_error_has_words(version: int, kind: int, code: int, data: bytes) -> None:
    refusal = refusal_of(control_message(version, ControlType.ERROR, struct.pack("!HH", kind, code) + data))
    assert refusal.words.isprintable()
    assert refusal.words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (struct.pack("!HH", 5, 1), "flow mod failed: table full (OFPFMFC_TABLE_FULL)"),
        (struct.pack("!HH", 6, 8), "group mod failed: unknown group (OFPGMFC_UNKNOWN_GROUP)"),
        (struct.pack("!HH", 6, 99), "group mod failed: code 99 (OFPET_GROUP_MOD_FAILED)"),
        (struct.pack("!HH", 77, 3), "error of type 77, code 3"),
        (struct.pack("!HH", 0, 0) + b"no\x1b[31m\n", r"hello failed: incompatible (OFPHFC_INCOMPATIBLE): no\x1b[31m\n"),
        (struct.pack("!HHI", 0xFFFF, 2313, 0x4F4E4600), "bundle failed: msg failed (OFPBFC_MSG_FAILED)"),
        (struct.pack("!HHI", 0xFFFF, 5, 0x2320), "error 5 of the experimenter 0x00002320"),
    ],
)
def test_errors_are_told_in_words_with_the_name_of_their_code(body: bytes, words: str) -> None:
    assert refusal_of(control_message(4, ControlType.ERROR, body)).words == words


def test_a_missing_library_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "os_ken.ofproto", None)
    constants.cache_clear()
    with pytest.raises(MissingLibraryError, match=r"OpenFlow needs os-ken: pip install 'trainyard\[openflow\]'"):
        OpenFlowListener([1], lambda _channel: None)
