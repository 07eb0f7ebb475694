"""Draw what devices of the runtime run, into a folder: python docs/examples/runtime_pictures.py docs/images.

Four clients share eight devices, by equal weights and by 1:2:4:8, as in Figure 9 of the Pathways paper. Then the small
GPT of pipelined_gpt.py is trained in a pipeline, as in Figure 10. One client and eight run calls that are short, as in
Figure 11, and two islands exchange gradients, as in Figure 12. All pictures show real runs.
"""

import sys
from itertools import count
from pathlib import Path
from threading import Event, Thread

import numpy
import pipelined_gpt as gpt

import runtime as rt
from experiments.report.device_rows import device_rows
from experiments.report.figure import save_figure
from experiments.report.style import FigureFormat

CALLS, CALL_S, GATE_S = 60, 0.01, 4.0
AFTER_MS, SHOWN_MS = 100, 300
SHORT_S, SHORT_CALLS, SHORT_SHOWN_MS = 0.001, 60, 30
GRADIENTS_S, UPDATE_S, STEPS = 0.02, 0.002, 6
GRADIENT_ELEMENTS = 1 << 20


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
    with rt.local(islands=2, hosts=1, devices=gpt.STAGES // 2) as runtime:
        list(gpt.in_a_pipeline(gpt.layers_of(gpt.STAGES), gpt.initial_parameters(gpt.STAGES)))
        events = runtime.trace()
    ran = [each for each in events if each["ph"] == "X"]
    last = max(each["args"]["execution"] for each in ran)
    step = [each for each in ran if each["args"]["execution"] == last]
    return events, min(each["ts"] for each in step) / 1e3, max(each["ts"] + each["dur"] for each in step) / 1e3


def short(clients):
    """Return what devices run for so many clients, each of which waits for a short call before it makes the next."""
    named = dict.fromkeys("ABCDEFGH"[:clients], 1)
    with rt.local(hosts=2, devices=4, weights=named) as runtime:
        ended = Event()

        def call(client):
            wait = rt.pmap(rt.timer(SHORT_S), devices=client.make_virtual_device_set().add_slice(8))
            for number in count():
                wait(numpy.zeros(8)).wait()
                if number == SHORT_CALLS:
                    ended.set()
                if ended.is_set():
                    return

        connected = [rt.connect(runtime.address, runtime.tokens[name]) for name in named]
        threads = [Thread(target=call, args=(client,)) for client in connected]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        events = runtime.trace()
        for client in connected:
            client.close()
    last_ms = max(each["ts"] for each in events if each["ph"] == "X") / 1e3
    return events, last_ms - SHORT_SHOWN_MS, last_ms


def two_islands():
    """Return what devices run for a model on two islands, each with half of the batch, which exchange gradients."""
    with rt.local(islands=2, hosts=1, devices=4) as runtime:
        virtual = runtime.make_virtual_device_set()
        slices = [virtual.add_slice(4, island=f"island-{number}") for number in range(2)]
        like_parameters = rt.ArraySpec((GRADIENT_ELEMENTS // 4,), "float32")
        gradients = [rt.pmap(rt.timer(GRADIENTS_S, like_parameters, "gradients"), devices=each) for each in slices]
        update = [rt.pmap(rt.timer(UPDATE_S, name="update"), devices=each) for each in slices]

        @rt.program
        def step(one, other):
            found = [compute(given) for compute, given in zip(gradients, (one, other), strict=True)]
            return [change(given, *found) for change, given in zip(update, (one, other), strict=True)]

        parameters = [numpy.zeros(GRADIENT_ELEMENTS, numpy.float32)] * 2
        for _ in range(STEPS):
            parameters = step(*parameters)
        for each in parameters:
            each.wait()
        events = runtime.trace()
    ran = [each for each in events if each["ph"] == "X"]
    ends_ms = sorted(each["ts"] + each["dur"] for each in ran if each["name"] == "update")
    return events, ends_ms[len(ends_ms) // STEPS] / 1e3, ends_ms[-1] / 1e3


def main(folder):
    """Draw all pictures."""
    runs = {
        "runtime equal shares": shares((1, 1, 1, 1)),
        "runtime shares": shares((1, 2, 4, 8)),
        "runtime pipeline": pipeline(),
        "runtime one client": short(1),
        "runtime eight clients": short(8),
        "runtime two islands": two_islands(),
    }
    for title, (events, from_ms, to_ms) in runs.items():
        figure = device_rows(events, title, from_ms, to_ms)
        save_figure(figure, folder / f"{figure.name}.svg", FigureFormat.SVG)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
