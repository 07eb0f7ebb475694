"""Draw what devices of the runtime run, into a folder: python docs/examples/runtime_pictures.py docs/images.

Four clients share eight devices, by equal weights and by 1:2:4:8, as in Figure 9 of the Pathways paper. Then the small
GPT of pipelined_gpt.py is trained in a pipeline, as in Figure 10. All pictures show real runs.
"""

import sys
from pathlib import Path

import numpy
import pipelined_gpt as gpt

import runtime as rt
from experiments.report.device_rows import device_rows
from experiments.report.figure import save_figure
from experiments.report.style import FigureFormat

CALLS, CALL_S, GATE_S = 60, 0.01, 4.0
AFTER_MS, SHOWN_MS = 100, 300


def shares(weights):
    """Return what devices run for four clients of these weights, and the times to show.

    A long call of another client holds the devices until all four have asked for more than these times hold.
    """
    named = {f"{name}, weight {weight}": weight for name, weight in zip("ABCD", weights, strict=True)}
    with rt.local(hosts=2, devices=4, policy="shares", weights=named) as runtime:
        gate = rt.pmap(rt.timer(GATE_S, name="gate"), devices=runtime.make_virtual_device_set().add_slice(8))
        gate(numpy.zeros(8))
        clients = [rt.connect(runtime.address, runtime.tokens[name]) for name in named]
        waiting = []
        for client in clients:
            wait = rt.pmap(rt.timer(CALL_S), devices=client.make_virtual_device_set().add_slice(8))
            waiting.append([wait(numpy.zeros(8)) for _ in range(CALLS)])
        for calls in waiting:
            calls[-1].wait()
        events = runtime.trace()
        for client in clients:
            client.close()
    from_ms = max(each["ts"] + each["dur"] for each in events if each["name"] == "gate") / 1e3 + AFTER_MS
    return events, from_ms, from_ms + SHOWN_MS


def pipeline():
    """Return what devices run for a small GPT, and from when to when its last step lasts."""
    layers = [gpt.first, *([gpt.block] * (gpt.STAGES - 2)), gpt.last]
    with rt.local(islands=2, hosts=1, devices=gpt.STAGES // 2) as runtime:
        list(gpt.in_a_pipeline(layers, gpt.initial_parameters(gpt.STAGES)))
        events = runtime.trace()
    ran = [each for each in events if each["ph"] == "X"]
    last = max(each["args"]["execution"] for each in ran)
    step = [each for each in ran if each["args"]["execution"] == last]
    return events, min(each["ts"] for each in step) / 1e3, max(each["ts"] + each["dur"] for each in step) / 1e3


def main(folder):
    """Draw all pictures."""
    runs = {
        "runtime equal shares": shares((1, 1, 1, 1)),
        "runtime shares": shares((1, 2, 4, 8)),
        "runtime pipeline": pipeline(),
    }
    for title, (events, from_ms, to_ms) in runs.items():
        figure = device_rows(events, title, from_ms, to_ms)
        save_figure(figure, folder / f"{figure.name}.svg", FigureFormat.SVG)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
