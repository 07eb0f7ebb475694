"""How congestion controls are found, refused, compiled in and kept apart from what flows without them do."""

import math
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.congestion import FIXED, CongestionControl, Event
from emulator.congestion.compilation import ARGUMENTS, require_compilable
from emulator.congestion.dctcp import DCTCP
from emulator.congestion.registry import CongestionControlError, control_names, find_control, load_control
from emulator.congestion.reno import RENO
from emulator.congestion.swift import SWIFT
from emulator.fabric import EmulatedFabric
from emulator.host_options import HostOptions
from emulator.native.module import Inlined, Module
from tests.emulator.congested import hosts
from tests.emulator.fabrics import advance, completion_times, dumbbell, five_tuple, star
from tests.emulator.marking_program import marked
from tests.emulator.programs import trainyard

OWN = """
from emulator.congestion import CongestionControl, Event, Words
from emulator.jit import compiled

STEP = {step}


@compiled
def larger(window: float) -> float:
    return window + {inner}


def start(words: Words, event: Event) -> float:
    return 2.0


def on_acknowledgement(words: Words, event: Event) -> float:
    words[1] += event.delivered
    return larger(event.window) if event.is_limited else event.window


def smallest(words: Words, event: Event) -> float:
    return {smallest}


OWN = CongestionControl(
    name="own", start=start, on_acknowledgement=on_acknowledgement, on_loss=smallest, on_timeout=smallest,
    parameters={{"unused": 1.0}}, state=("seen",),
)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules that can be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def write(folder: Path, name: str, *, step: str = "1", inner: str = "STEP", smallest: str = "float('nan')") -> None:
    (folder / f"{name}.py").write_text(OWN.format(step=step, inner=inner, smallest=smallest))


def busy(result: EmulatedFabric, control: str | None, sizes: list[int]) -> list[int]:
    """Flows of several hosts that collide."""
    ends = [(f"h{n % 3}", f"h{3 + n // 2 % 3}", 50_000 + n) for n in range(len(sizes))]
    flows = [result.add_flow(five_tuple(result.fabric, *end), control) for end in ends]
    for flow, size_bytes in zip(flows, sizes, strict=True):
        result.start_transfer(flow, size_bytes)
    return flows


SIZES = [150_000 + 10_000 * number for number in range(6)]


@pytest.mark.slow
def test_fixed_windows_beside_controls_send_as_in_a_program_without_controls() -> None:
    """Byte for byte and picosecond for picosecond, with losses and timeouts."""
    traces = []
    for options in (HostOptions(1458, acknowledge_every=1), hosts()):
        result = marked(dumbbell(3), options, queue_limit_bytes=30_000, trace_rows=500)
        control = FIXED if options.controls else None
        flows = busy(result, control, SIZES)
        assert completion_times(result, flows)
        traces.append((result.take_trace(), [result.retransmissions(flow) for flow in flows], result.packet_hops))
    assert traces[0] == traces[1]
    assert sum(traces[0][1]) > 100


def test_a_program_of_one_fabric_gets_the_controls_of_another() -> None:
    program = trainyard()
    renewed = program.controlled_by((RENO,)).controlled_by((DCTCP,))
    assert (renewed.source, renewed.controls) == (program.controlled_by((DCTCP,)).source, (DCTCP,))
    assert renewed.controlled_by(()).source == program.source


@pytest.mark.slow
@given(st.data())
@settings(max_examples=25)
def test_every_transfer_ends_once_and_runs_repeat(data: st.DataObject) -> None:
    """Whatever is lost; no packet is forgotten, and steps change nothing."""
    size = st.integers(1, 200_000)
    transfers = data.draw(st.lists(st.tuples(st.sampled_from(["reno", "dctcp", "swift", FIXED]), size), min_size=1))
    limit_bytes = data.draw(st.sampled_from([4_000, 12_000, 60_000, 16_000_000]))
    every, first = data.draw(st.sampled_from([1, 2, 4])), data.draw(st.sampled_from([0.01, 0.5, 1, 3, 10, 62]))
    lose_every = data.draw(st.sampled_from([0, 7, 31]))
    seen = []
    for steps in (1, 7):
        result = marked(
            dumbbell(3),
            hosts(first, every),
            mark_from=3,
            queue_limit_bytes=limit_bytes,
            lose_every={"t0": lose_every},
            trace_rows=500,
        )
        flows = [busy(result, control, [size_bytes])[0] for control, size_bytes in transfers]
        completions = []
        for _ in range(steps):
            completions += advance(result, result.now_ps + 7 * 10**12 // steps)
        assert sorted(completion.flow for completion in completions) == flows
        for flow, (control, size_bytes) in zip(flows, transfers, strict=True):
            num_packets = -(-size_bytes // 1458)
            assert result.progress(flow).sent == result.progress(flow).acknowledged == num_packets
            if control != FIXED:
                sender = result.sender(flow)
                assert sender.delivered_packets == num_packets
                assert 0 < sender.window_packets <= 62
                assert sender.marked_packets == 0 or control == "dctcp"
        assert result.misdelivered == 0
        assert not result.queued_bytes().any()
        seen.append((completions, result.take_trace(), result.packet_hops))
    assert seen[0] == seen[1]


@pytest.mark.slow
def test_controls_do_the_same_on_two_cores() -> None:
    """Marks, losses and pacing, with receivers on one core and senders on the other."""
    seen = []
    for cores in (1, 2):
        result = marked(
            dumbbell(3), hosts(0.5), mark_from=3, queue_limit_bytes=30_000, lose_every={"t0": 31}, cores=cores
        )
        flows = [busy(result, control, SIZES[:4]) for control in ("reno", "dctcp", "swift", FIXED)]
        completions = advance(result, 10**12)
        assert sorted(completion.flow for completion in completions) == sorted(flow for own in flows for flow in own)
        senders = [result.sender(flow) for own in flows[:-1] for flow in own]
        seen.append((completions, senders, result.packet_hops))
    assert seen[0] == seen[1]


@pytest.mark.slow
def test_flows_of_one_fabric_may_have_different_controls() -> None:
    result = marked(star(3), hosts())
    first, other, fixed = (
        result.add_flow(five_tuple(result.fabric, "h0", "h1", port), control)
        for port, control in ((1, None), (2, "dctcp"), (3, FIXED))
    )
    for flow in (first, other, fixed):
        result.start_transfer(flow, 100_000)
    assert completion_times(result, [first, other, fixed])
    assert set(result.sender(first).words) == {*RENO.parameters, *RENO.state}
    assert set(result.sender(other).words) == {*DCTCP.parameters, *DCTCP.state}
    with pytest.raises(ValueError, match=f"flow {fixed} has a fixed window"):
        result.sender(fixed)
    with pytest.raises(ValueError, match=r"no flow can have congestion control 'cubic': the hosts have reno, dctcp"):
        result.add_flow(five_tuple(result.fabric, "h0", "h2"), "cubic")
    assert result.add_flow(five_tuple(result.fabric, "h0", "h2")) == fixed + 1


@pytest.mark.slow
def test_control_of_ones_own_is_compiled_in(folder: Path) -> None:
    """A window that is no number becomes the smallest, and the flow goes on."""
    write(folder, "own_control")
    options = HostOptions(congestion_controls=(load_control("own_control:OWN"),))
    result = marked(star(2), options, lose_every={"s": 40})
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1"))
    result.start_transfer(flow, 50 * 4096)
    assert completion_times(result, [flow])
    advance(result, result.now_ps + 10**9)
    assert result.sender(flow).words == {"unused": 1.0, "seen": 50.0}
    assert result.sender(flow).window_packets % 1 == pytest.approx(1e-4)


def code_of(control: CongestionControl) -> str:
    """LLVM's text of a control's functions."""
    module = Module()
    for function in control.functions:
        module.function(Inlined(function), ARGUMENTS)
    return module.text


def test_machine_code_is_that_of_all_that_a_control_uses(folder: Path) -> None:
    """A constant of the module, a function that it calls, and its own functions: another one is another program."""
    variants = [{}, {"step": "2"}, {"inner": "3 * STEP"}, {"smallest": "1.5"}]
    codes = set()
    for number, changes in enumerate(variants):
        write(folder, f"variant_{number}", **changes)
        codes.add(code_of(load_control(f"variant_{number}:OWN")))
    assert len(codes) == len(variants)
    # Parameters are words of flows, not code.
    assert code_of(DCTCP) == code_of(DCTCP.with_parameters({"gain": 0.5}))


@pytest.mark.parametrize(
    ("smallest", "why"),
    [
        ("window_of_nothing(words)", "function 'window_of_nothing'"),
        ("'large'", "expression \"'large'\""),
        ("event._replace(window=1.0)", "expression 'event._replace"),
        ("sum(words)", "function 'sum'"),
        ("start(words, event)", "function 'start', which is not decorated by emulator.jit.compiled"),
        ("words[1:]", "an index|expression"),
        ("event.share", "field 'share'"),
        ("words[0] or 1.0", "the value of 'words.0. or 1.0'"),
        ("[1.0][0]", "expression '.1.0.'"),
        ("1.0 % words[1]", "operation Mod on f64"),
    ],
)
def test_function_that_cannot_be_compiled_is_refused_with_place_and_reason(
    smallest: str, why: str, folder: Path
) -> None:
    write(folder, "bad_control", smallest=smallest)
    line = 1 + (folder / "bad_control.py").read_text().splitlines().index(f"    return {smallest}")
    with pytest.raises(
        ValueError,
        match=rf"congestion control 'own': smallest cannot be compiled: .*bad_control.py:{line}: smallest: ({why})",
    ):
        require_compilable(load_control("bad_control:OWN"))
    sys.modules.pop("bad_control")


@pytest.mark.parametrize(("smallest", "what"), [("event.is_limited", "bool"), ("event", "Record")])
def test_function_must_return_a_window(smallest: str, what: str, folder: Path) -> None:
    write(folder, "odd_control", smallest=smallest)
    with pytest.raises(ValueError, match=rf"'own': smallest must return a window in packets, not .*{what}"):
        require_compilable(load_control("odd_control:OWN"))
    sys.modules.pop("odd_control")


def test_function_without_a_definition_is_refused() -> None:
    nameless = CongestionControl(
        name="x",
        start=lambda words, event: 1.0,  # noqa: ARG005
        on_acknowledgement=RENO.on_acknowledgement,
        on_loss=RENO.on_loss,
        on_timeout=RENO.on_timeout,
    )
    with pytest.raises(ValueError, match=r"congestion control 'x': .*<lambda> cannot be compiled: .*begins with def"):
        require_compilable(nameless)


def test_names_of_controls() -> None:
    assert control_names() == (FIXED, "dctcp", "reno", "swift")
    assert [find_control(name) for name in control_names()[1:]] == [DCTCP, RENO, SWIFT]
    with pytest.raises(
        CongestionControlError, match="unknown congestion control 'cubic': expected one of fixed, dctcp"
    ):
        find_control("cubic")
    with pytest.raises(CongestionControlError, match="names code to import"):
        find_control("emulator.congestion.reno:RENO")
    assert load_control("emulator.congestion.reno:RENO") == RENO


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module:X", "ModuleNotFoundError"),
        ("emulator.congestion.reno:NONE", "AttributeError"),
        ("emulator.congestion.reno:start", "is a function"),
    ],
)
def test_control_that_cannot_be_loaded_is_refused(name: str, words: str) -> None:
    with pytest.raises(CongestionControlError, match=words):
        load_control(name)


@pytest.mark.parametrize(
    ("controls", "words"),
    [
        ((), "must name one or more"),
        ("reno", "must name one or more, not 'reno'"),
        (("reno", "reno"), "two of one name among reno, reno"),
        (("reno", RENO.with_parameters({"initial_window": 3})), "two of one name"),
        (("cubic",), "unknown congestion control 'cubic'"),
    ],
)
def test_bad_controls_of_hosts_are_refused(controls: tuple[str, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        HostOptions(congestion_controls=controls)


def test_unknown_and_bad_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'dctcp' has no parameter 'g'; it has initial_window, gain"):
        DCTCP.with_parameters({"g": 0.1})
    for value in (math.nan, math.inf, True, "1"):
        with pytest.raises(ValueError, match="gain must be a finite number"):
            DCTCP.with_parameters({"gain": value})  # type: ignore[dict-item]


def test_controls_are_plain_functions() -> None:
    """They can be called and tested without the emulator."""
    event = Event(0.0, 20.0, 4, 0, 30e-6, 100, 120, 20, is_limited=True, is_recovering=False)
    words = [10.0, math.inf]
    assert RENO.on_loss(words, event) == 10  # type: ignore[arg-type]
    assert words[1] == 10
    assert RENO.on_acknowledgement(words, event) == 20 + 4 / 20  # type: ignore[arg-type]
    assert RENO.on_acknowledgement(words, event._replace(is_recovering=True)) == 20  # type: ignore[arg-type]
    assert RENO.on_timeout(words, event) == 1  # type: ignore[arg-type]
