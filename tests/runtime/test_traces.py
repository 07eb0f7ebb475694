from runtime.traces import trace_events


def test_a_computation_becomes_an_event_on_the_row_of_its_device() -> None:
    ran = ["matmul", 3, 17, 1, 100.25, 100.5]
    idle = {"host": 1, "island": "east", "answers": False}
    host = {"host": 0, "island": "east", "queued": [0, 0], "ran": [["first", 9, 16, 0, 100.0, 100.125], ran]}
    status = {"hosts": [host, idle], "clients": [{"number": 3, "client": "alice#3"}]}
    *names, _, event = trace_events(status)
    assert [(each["pid"], each.get("tid"), each["args"]["name"]) for each in names] == [
        (0, None, "east, host 0"),
        (0, 0, "device 0"),
        (0, 1, "device 1"),
    ]
    assert event == {
        "ph": "X",
        "name": "matmul",
        "cat": "alice#3",
        "pid": 0,
        "tid": 1,
        "ts": 250_000.0,
        "dur": 250_000.0,
        "args": {"client": "alice#3", "execution": 17},
    }


def test_the_cpus_of_a_host_have_a_row_after_its_devices() -> None:
    host = {"host": 0, "island": "east", "queued": [0, 0], "ran": [["read", 3, 17, -1, 1.0, 2.0]]}
    *_, row, event = trace_events({"hosts": [host], "clients": []})
    assert (row["tid"], row["args"]) == (2, {"name": "host CPUs"})
    assert (event["name"], event["tid"]) == ("read", 2)


def test_an_idle_runtime_has_no_computations() -> None:
    assert trace_events({"hosts": [], "clients": []}) == []
