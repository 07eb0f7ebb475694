"""docs/emulator.md, "Congestion control": its blocks are what is in the examples, and the example runs."""

import re
import sys

import pytest

from emulator.congestion.registry import load_control
from emulator.host_options import HostOptions
from tests.docs.pages import ROOT
from tests.emulator.congested import fast_hosts, send, watch
from tests.emulator.marking_program import marked

_PAGE = (ROOT / "docs" / "emulator.md").read_text(encoding="utf-8")
_EXAMPLE = (ROOT / "docs" / "examples" / "delay_halving.py").read_text(encoding="utf-8")


def test_page_shows_the_example() -> None:
    (block,) = re.findall(r"^```python\n# delay_halving\.py\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL)
    assert _EXAMPLE.endswith(block)
    assert len(_EXAMPLE.splitlines()) <= 50


def test_control_of_the_example_keeps_the_queue_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half as long again as a round trip of 28 us is a queue of 12 packets."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "examples")
    monkeypatch.delitem(sys.modules, "delay_halving", raising=False)
    options = HostOptions(1458, acknowledge_every=1, congestion_controls=(load_control("delay_halving:CONTROL"),))
    result = marked(fast_hosts(1), options)
    samples = watch(result, send(result, "delay-halving", 1), 0.02).last(0.5)
    assert 10 < samples.queue.max() < 20
    assert samples.goodput_gbps > 7
    assert result.drops("t0").queue_full == 0
