"""The loads of many links at once are those of each."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller.telemetry.int_reports import NOT_KNOWN, HopSamples
from controller.telemetry.link_measurements import LinkMeasurements

LINKS = range(5)
REPORTS = st.lists(
    st.tuples(st.sampled_from(LINKS[:-1]), st.sampled_from("abcdefg"), st.integers(0, 1_000_000), st.integers(0, 20)),
    max_size=40,
)


@given(REPORTS, st.integers(0, 20))
def test_loads_of_many_links_are_those_of_each(reports: list[tuple[int, str, int, int]], since_s: int) -> None:
    measurements = LinkMeasurements(window_us=4096.0)
    unknown = np.array([NOT_KNOWN])
    for link, host, window_bytes, came_s in reports:
        columns = np.array([link]), np.array([float(came_s)])
        measurements.record(HopSamples(*columns, unknown, unknown, unknown, np.array([window_bytes])), host)
    together = measurements.loads_bps(LINKS, float(since_s)).tolist()
    for link, load_bps in zip(LINKS, together, strict=True):
        alone = measurements.load_bps(link, float(since_s))
        assert math.isnan(load_bps) if alone is None else load_bps == alone
