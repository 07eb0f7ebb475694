"""Stopped, killed and unreachable leaders in the middle of large batches; ``make chaos`` has more of them."""

import os

import pytest

from tests.chaos.stopped_leaders import campaign
from tests.namespaces import namespaces
from tests.postgresql import NotInstalledError

_STOPS = int(os.environ.get("CHAOS_STOPS", "1"))
_LEASE_S = 2.0


@pytest.mark.parametrize(
    ("kind", "failures"),
    [
        ("sqlite", ("stops", "kills")),
        ("postgresql", ("stops", "kills", "outages")),
        ("postgresql", ("power_losses",)),
    ],
    ids=["sqlite", "postgresql", "power loss"],
)
def test_another_leads_and_nothing_acknowledged_is_lost(kind: str, failures: tuple[str, ...]) -> None:
    if "power_losses" in failures:
        with namespaces("any"):  # skips where there are none
            pass
    try:
        figures = campaign(kind, dict.fromkeys(failures, _STOPS), _LEASE_S)
    except NotInstalledError as error:
        pytest.skip(f"not tried on PostgreSQL: {error}")
    assert {name: figures[name]["number"] for name in failures} == dict.fromkeys(failures, _STOPS)
    assert figures["jobs"] > 0
