from runtime.traces import announced_before_producer_end, trace_events


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


def test_a_transfer_has_a_row_of_its_flow_and_says_when_it_was_announced_ranked_and_made() -> None:
    sender = {
        "host": 0,
        "island": "east",
        "queued": [0],
        "ran": [["make", 3, 17, 0, 100.0, 100.5], ["make", 3, 18, 0, 100.5, 101.0]],
        "sent": [
            [7, [17, 0, 0, 0], 1, 64, -1, 0.0, 100.5, 100.5],
            [7, [18, 0, 0, 0], 1, 64, 5, 100.75, 101.0, 101.125],
            [7, [19, 0, 0, 0], 1, 64, 5, 100.75, 101.0, 101.125],
        ],
    }
    receiver = {
        "host": 1,
        "island": "west",
        "queued": [0],
        "ran": [],
        "arrived": [[[17, 0, 0, 0], 100.75], [[18, 0, 0, 0], 101.25]],
    }
    network = {"announced": [[17, "a", 100.625], [18, "a", 100.625]]}
    events = trace_events({"hosts": [sender, receiver], "clients": [], "network": network})
    assert {"ph": "M", "name": "thread_name", "pid": 0, "tid": 1007, "args": {"name": "flow 7 to host 1"}} in events
    first, second = (event for event in events if event.get("cat") == "transfer")
    assert first["args"] == {
        "execution": 17,
        "job": "a",
        "size_bytes": 64,
        "level": None,
        "announced_us": 625_000.0,
        "ranked_us": None,
        "made_us": 500_000.0,
    }
    assert second == {
        "ph": "X",
        "name": "to host 1",
        "cat": "transfer",
        "pid": 0,
        "tid": 1007,
        "ts": 1_125_000.0,
        "dur": 125_000.0,
        "args": {
            "execution": 18,
            "job": "a",
            "size_bytes": 64,
            "level": 5,
            "announced_us": 625_000.0,
            "ranked_us": 750_000.0,
            "made_us": 1_000_000.0,
        },
    }
    assert announced_before_producer_end(events) == 0.5


def test_without_transfers_no_share_of_them_was_announced() -> None:
    assert announced_before_producer_end(trace_events({"hosts": [], "clients": []})) is None
