"""Arrays that clients publish for others, who read them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime import messages
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

QUOTA = rt.Quota(most_bytes=1000, most_arrays=10)
add_one = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x + 1)
add = rt.function(library="numpy", outputs=lambda x, _: x)(lambda x, y: x + y)


@rt.function(library="numpy", outputs=lambda x: x)
def write(x: Any) -> Any:
    x += 1
    return x


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    quotas = {"trainer": QUOTA, "reader": QUOTA, "stranger": rt.Quota()}
    with rt.local(hosts=2, devices=1, quotas=quotas, reads={"reader": ["trainer"]}) as started:
        yield started


@pytest.fixture
def trainer(runtime: rt.LocalRuntime) -> Iterator[rt.Runtime]:
    with rt.connect(runtime.address, runtime.tokens["trainer"]) as client:
        yield client
    until(lambda: is_empty(runtime))


@pytest.fixture
def reader(runtime: rt.LocalRuntime) -> Iterator[rt.Runtime]:
    with rt.connect(runtime.address, runtime.tokens["reader"]) as client:
        yield client


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def is_empty(runtime: rt.Runtime) -> bool:
    """Whether no host holds anything, and nothing is on an account."""
    status = runtime.status()
    held = [each["total"]["arrays"] + each["total"]["held_bytes"] for each in status["clients"]]
    return not any(host["handles"] or sum(host["device_bytes"]) for host in status["hosts"]) and not any(held)


def totals(runtime: rt.Runtime, *names: str) -> list[tuple[int, int]]:
    """Arrays and bytes of clients, (-1, -1) for those that are not there."""
    found = {each["client"].partition("#")[0]: each["total"] for each in runtime.status()["clients"]}
    return [(found[name]["arrays"], found[name]["held_bytes"]) if name in found else (-1, -1) for name in names]


def on_two(client: rt.Runtime, function: Any, **axes: Any) -> Any:
    return rt.pmap(function, devices=client.make_virtual_device_set().add_slice(2), **axes)


def test_a_reader_takes_what_was_published_where_it_lies(
    runtime: rt.LocalRuntime, trainer: rt.Runtime, reader: rt.Runtime
) -> None:
    made = on_two(trainer, add_one)
    trainer.publish("weights", {"layers": [made(np.zeros(4)), made(np.ones(2))], 0: (made(np.arange(6.0)),)})
    weights = reader.open("trainer/weights")
    assert list(weights) == ["layers", 0]
    assert [each.numpy(PATIENCE_S).tolist() for each in weights["layers"]] == [[1, 1, 1, 1], [2, 2]]
    summed = on_two(reader, add)(weights[0][0], np.ones(6))
    assert summed.numpy(PATIENCE_S).tolist() == [2, 3, 4, 5, 6, 7]
    (shown,) = runtime.status()["published"]
    assert (shown["name"], shown["arrays"], shown["size_bytes"], shown["readers"]) == ("trainer/weights", 3, 96, 1)
    assert totals(runtime, "trainer", "reader") == [(3, 96), (4, 48)]
    assert sum(host["size_bytes"] for host in runtime.status()["hosts"]) == 96 + 48  # each is there once


def test_what_is_not_computed_yet_is_opened_when_it_is(trainer: rt.Runtime, reader: rt.Runtime) -> None:
    trainer.publish("late", on_two(trainer, rt.timer(0.3))(np.ones(2)))
    with pytest.raises(TimeoutError, match=r"trainer/late: has not been computed after 0.01 s"):
        reader.open("trainer/late", 0.01)
    assert reader.open("trainer/late").numpy(PATIENCE_S).tolist() == [0, 0]
    failing = on_two(trainer, rt.function(library="numpy", outputs=lambda x: x)(lambda x: x[9]))(np.ones(2))
    trainer.publish("failing", failing)
    with pytest.raises(rt.ComputationError, match="IndexError"):
        reader.open("trainer/failing").numpy(PATIENCE_S)


def test_nobody_writes(trainer: rt.Runtime, reader: rt.Runtime) -> None:
    x = on_two(trainer, add_one)(np.zeros(2))
    trainer.publish("x", x)
    for client, name, says in (
        (trainer, "x", "trainer/x: is published, and cannot be written; withdraw it first"),
        (reader, "trainer/x", "trainer/x: client reader may not write what belongs to client 'trainer'"),
    ):
        with pytest.raises(rt.RefusedError, match=says):
            client.publish(name, on_two(client, add_one)(np.zeros(2)))
    with pytest.raises(rt.RefusedError, match="trainer/x: client reader may not withdraw what belongs to"):
        reader.withdraw("trainer/x")
    opened = reader.open("trainer/x")
    for client, array in ((reader, opened), (trainer, x)):
        with pytest.raises(rt.ComputationError, match="write raised ValueError: output array is read-only"):
            on_two(client, write)(array).numpy(PATIENCE_S)
    with pytest.raises(ValueError, match="read-only"):
        opened.numpy()[0] = 7
    assert opened.numpy().tolist() == x.numpy(PATIENCE_S).tolist() == [1, 1]


def test_pytorch_functions_that_write_into_what_is_published_fail_by_name(
    trainer: rt.Runtime, reader: rt.Runtime
) -> None:
    pytest.importorskip("torch")
    trainer.publish("x", on_two(trainer, add_one)(np.zeros(2)))
    with pytest.raises(rt.ComputationError, match=r"it has written into its input 0, which is read-only"):
        on_two(reader, lambda x: x.add_(1) * 2)(reader.open("trainer/x")).numpy(PATIENCE_S)


def test_who_may_not_read_is_refused_by_name(runtime: rt.LocalRuntime, trainer: rt.Runtime) -> None:
    trainer.publish("x", on_two(trainer, add_one)(np.zeros(2)))
    with rt.connect(runtime.address, runtime.tokens["stranger"]) as stranger:
        with pytest.raises(rt.RefusedError, match="client stranger: may not read what client 'trainer' publishes"):
            stranger.open("trainer/x")
        with pytest.raises(rt.RefusedError, match="stranger/x: is not published"):
            stranger.open("x")
    with rt.connect(runtime.address, runtime.tokens["trainer"]) as sibling:
        assert sibling.open("x").numpy(PATIENCE_S).tolist() == [1, 1]
    assert runtime.open("trainer/x").numpy(PATIENCE_S).tolist() == [1, 1]  # operators may
    with pytest.raises(rt.RefusedError, match="there is no array"):
        trainer._requests.ask(lambda request: messages.Publish(request, "y", (99,), ["array", [], []]))


def test_a_publication_holds_what_its_client_needs_no_more(
    runtime: rt.LocalRuntime, trainer: rt.Runtime, reader: rt.Runtime
) -> None:
    x = on_two(trainer, add_one)(np.zeros(2))
    trainer.publish("x", x)
    trainer.publish("same", [x, x])
    del x
    time.sleep(0.5)  # the client tells several times a second what it needs no more
    assert totals(runtime, "trainer") == [(1, 16)]
    trainer.withdraw("x")
    with pytest.raises(rt.RefusedError, match="trainer/x: is not published"):
        reader.open("trainer/x")
    opened = reader.open("trainer/same")
    trainer.withdraw("same")
    until(lambda: totals(runtime, "trainer", "reader") == [(0, 0), (2, 16)])
    assert on_two(reader, add)(*opened).numpy(PATIENCE_S).tolist() == [2, 2]
    del opened
    until(lambda: totals(runtime, "reader") == [(0, 0)])


def test_a_quota_of_arrays_is_for_what_is_opened_too(trainer: rt.Runtime, reader: rt.Runtime) -> None:
    x = on_two(trainer, add_one)(np.zeros(2))
    trainer.publish("many", [x] * 11)
    with pytest.raises(rt.RefusedError, match="trainer/many: client reader: quota: it holds 0 of at most 10 arrays"):
        reader.open("trainer/many")


_PUBLISHER = """
import sys, numpy, runtime
address, token = sys.argv[1:]
client = runtime.connect(address, token)
add_one = runtime.function(library="numpy", outputs=lambda x: x)(lambda x: x + 1)
slice_ = client.make_virtual_device_set().add_slice(2)
x = runtime.pmap(add_one, devices=slice_)(numpy.zeros(2))
client.publish("x", x)
client.publish("later", runtime.pmap(runtime.timer(600), devices=slice_)(x))
print("published", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_client_published_lives_until_its_readers_let_go(
    runtime: rt.LocalRuntime, reader: rt.Runtime, tmp_path: Path
) -> None:
    (tmp_path / "publisher.py").write_text(_PUBLISHER)
    command = [sys.executable, str(tmp_path / "publisher.py"), runtime.address, runtime.tokens["trainer"]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert killed.stdout is not None
    assert killed.stdin is not None
    assert killed.stdout.readline() == "published\n"
    opened = reader.open("trainer/x")
    with pytest.raises(TimeoutError):
        reader.open("trainer/later", 0.1)
    assert totals(runtime, "trainer", "reader") == [(2, 32), (1, 0)]
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    killed.stdin.close()
    until(lambda: totals(runtime, "trainer", "reader") == [(-1, -1), (1, 16)])
    with pytest.raises(rt.RefusedError, match="trainer/x: is not published"):
        reader.open("trainer/x")
    assert on_two(reader, add_one)(opened).numpy(PATIENCE_S).tolist() == [2, 2]
    assert opened.numpy(PATIENCE_S).tolist() == [1, 1]
    del opened
    until(lambda: is_empty(runtime))


def test_a_reader_that_ends_changes_nothing_for_others(
    runtime: rt.LocalRuntime, trainer: rt.Runtime, reader: rt.Runtime
) -> None:
    x = on_two(trainer, add_one)(np.zeros(2))
    trainer.publish("x", x)
    opened = reader.open("trainer/x")
    with rt.connect(runtime.address, runtime.tokens["reader"]) as other:
        on_two(other, add_one)(other.open("trainer/x")).wait(PATIENCE_S)
    until(lambda: totals(runtime, "trainer", "reader") == [(1, 16), (1, 0)])
    for client, array in ((trainer, x), (reader, opened)):
        assert on_two(client, add_one)(array).numpy(PATIENCE_S).tolist() == [2, 2]


def test_what_is_published_moves_with_all_who_hold_it() -> None:
    with rt.local(hosts=2, devices=1, reads={"reader": ["local"]}) as runtime:
        with rt.connect(runtime.address, runtime.tokens["reader"]) as reader:
            x, y = (on_two(runtime, add_one)(np.full(2, value)) for value in (0.0, 1.0))
            runtime.publish("x", x)
            runtime.publish("y", y)
            of_x, of_y = reader.open("local/x"), reader.open("local/y")
            add_to = on_two(reader, add)
            runtime.withdraw("y")
            del y
            runtime.add_host("island-0", devices=1)
            assert runtime.remove_host(1, PATIENCE_S) == 2
            assert add_to(of_x, of_y).numpy(PATIENCE_S).tolist() == [3, 3]
            assert x.numpy(PATIENCE_S).tolist() == [1, 1]
            with pytest.raises(rt.ComputationError, match="read-only"):
                on_two(reader, write)(of_x).numpy(PATIENCE_S)
            del of_x, of_y, x
            runtime.withdraw("x")
        until(lambda: is_empty(runtime))


def test_an_array_on_the_move_goes_on_for_its_reader_when_its_maker_lets_go() -> None:
    fill = rt.function(library="numpy", outputs=rt.ArraySpec((100,), "float64"))(lambda x: x.repeat(100))
    with (
        rt.local(hosts=1, devices=1, device_memory_bytes=1000, reads={"reader": ["maker"], "maker": []}) as runtime,
        rt.connect(runtime.address, runtime.tokens["reader"]) as reader,
        rt.connect(runtime.address, runtime.tokens["maker"]) as maker,
    ):
        x = rt.pmap(fill, devices=maker.make_virtual_device_set().add_slice(1))(np.ones(1))
        maker.publish("x", x)
        opened = reader.open("maker/x")
        runtime.add_host("island-0", devices=1, device_memory_bytes=1000, host_memory_bytes=0)
        blocking = rt.pmap(fill, devices=runtime.make_virtual_device_set().add_slice(1))(np.ones(1)).wait(PATIENCE_S)
        with pytest.raises(TimeoutError):
            runtime.remove_host(0, 0.2)
        del x
        maker.close()
        until(lambda: totals(runtime, "reader") == [(1, 800)])
        del blocking
        until(lambda: [host["host"] for host in runtime.status()["hosts"]] == [1])
        assert (opened.numpy(PATIENCE_S) == 1).all()
        assert runtime.status()["hosts"][0]["device_bytes"] == [800]
        del opened
        until(lambda: is_empty(runtime))
