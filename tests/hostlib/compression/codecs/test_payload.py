"""A header says what follows it, and nothing else is taken for one."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.choice import Precision
from hostlib.compression.codecs.errors import CorruptPayloadError
from hostlib.compression.codecs.payload import SIZE_BYTES, Form, Header


@given(
    st.sampled_from(Form),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.sampled_from(Precision),
    st.booleans(),
    st.integers(-126, 126),
)
def test_a_header_comes_back(
    form: Form, one: int, other: int, precision: Precision, is_finite: bool, exponent: int
) -> None:
    header = Header(form, max(one, other), min(one, other), precision, is_finite, 2.0**exponent)
    written = torch.zeros(SIZE_BYTES + 8, dtype=torch.uint8)
    header.write(written)
    assert Header.read(written) == header
    assert not written[SIZE_BYTES:].any()


@pytest.mark.parametrize(
    ("position", "value"),
    [(4, 6), (8, 5), (9, 0), (9, 4), (15, 0xFF), (15, 0xBF)],
    ids=["more than there are", "precision", "no form", "form", "scale is NaN", "scale is negative"],
)
def test_a_header_without_meaning_is_refused(position: int, value: int) -> None:
    written = torch.zeros(SIZE_BYTES, dtype=torch.uint8)
    Header(Form.PLAIN, 5, 4, Precision.FP16, is_finite=True, scale=1.0).write(written)
    written[position] = value
    with pytest.raises(CorruptPayloadError, match="its header means nothing"):
        Header.read(written)


@pytest.mark.parametrize(
    "payload",
    [torch.zeros(SIZE_BYTES - 1, dtype=torch.uint8), torch.zeros(64), torch.zeros(8, 64, dtype=torch.uint8)],
    ids=["short", "floats", "matrix"],
)
def test_what_are_no_bytes_is_refused(payload: torch.Tensor) -> None:
    with pytest.raises(CorruptPayloadError, match="expected bytes"):
        Header.read(payload)
