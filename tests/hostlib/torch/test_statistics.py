"""What a training script logs of the network."""

import hostlib.torch
from hostlib.torch import State, Statistics


def test_scalars_have_a_name_each_and_leave_out_what_is_not_known() -> None:
    assert Statistics(State.WAITING, "job", iterations=2, collectives=6).scalars() == {
        "trainyard/iterations": 2.0,
        "trainyard/collectives": 6.0,
        "trainyard/sent_bytes": 0.0,
        "trainyard/retransmissions": 0.0,
    }


def test_scalars_are_numbers_with_a_level_for_each_group() -> None:
    found = Statistics(
        State.REGISTERED,
        "job",
        rank=3,
        iterations=20,
        collectives=60,
        plan_number=0,
        levels={"data 0": 7, "tensor 1": 0},
        iteration_s=0.5,
        iteration_before_s=0.75,
        compute_s=0.25,
        sent_bytes=1 << 40,
        retransmissions=2,
    ).scalars(prefix="")
    assert found == {
        "iterations": 20.0,
        "collectives": 60.0,
        "plan_number": 0.0,
        "level/data 0": 7.0,
        "level/tensor 1": 0.0,
        "iteration_s": 0.5,
        "iteration_before_s": 0.75,
        "compute_s": 0.25,
        "sent_bytes": float(1 << 40),
        "retransmissions": 2.0,
    }
    assert {type(value) for value in found.values()} == {float}


def test_nothing_attached_is_plain_and_says_so() -> None:
    found = hostlib.torch.stats()
    assert (found.state, found.job, found.note) == (State.PLAIN, "", "nothing is attached")
    hostlib.torch.detach()


def test_they_can_be_had_when_the_job_has_ended() -> None:
    hostlib.torch.attach(job="resnet")
    assert hostlib.torch.stats() == Statistics(State.WAITING, "resnet")
    hostlib.torch.detach()
    assert hostlib.torch.stats() == Statistics(State.WAITING, "resnet")


def test_they_say_why_a_process_could_not_be_attached() -> None:
    hostlib.torch.attach("nowhere", job="resnet")
    assert hostlib.torch.stats().state is State.PLAIN
    assert "nowhere" in hostlib.torch.stats().note
