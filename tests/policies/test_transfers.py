from policies.flows import FlowGroup, FlowKey
from policies.job import Profile
from policies.transfers import MAX_TRANSFERS, Transfers
from tests.policies.builders import make_job


def group(offsets_s: list[float]) -> FlowGroup:
    (made,) = make_job("a", [(1.0, ((0,),))] * len(offsets_s)).flow_groups
    flows = tuple(
        type(flow)(FlowKey("a", "g", number), flow.five_tuple, 1.0, offset_s, flow.candidates, flow.hashed_path)
        for number, (flow, offset_s) in enumerate(zip(made.flows, offsets_s, strict=True))
    )
    return FlowGroup("g", flows)


def test_a_coflow_has_the_rest_of_the_computation() -> None:
    transfers = Transfers.of([group([3.0, 3.0])], Profile(4.0, 0.25, 1.0))
    assert (transfers.transfer_of.tolist(), transfers.release_s.tolist(), transfers.due_s.tolist()) == (
        [0, 0],
        [1.0],
        [4.0],
    )


def test_offsets_in_any_order_stagger_releases_and_needs() -> None:
    transfers = Transfers.of([group([]), group([2.0, 0.0, 1.0])], Profile(4.0, 0.25, 1.0))
    assert transfers.transfer_of.tolist() == [2, 0, 1]
    assert transfers.group_of.tolist() == [1, 1, 1]
    assert transfers.release_s.tolist() == [1.0, 2.0, 3.0]
    assert transfers.due_s.tolist() == [2.0, 3.0, 4.0]


def test_offsets_beyond_the_computation_leave_no_window() -> None:
    transfers = Transfers.of([group([0.0, 9.0])], Profile(4.0, 0.25, 1.0))
    assert transfers.release_s.tolist() == [1.0, 4.0]
    assert transfers.due_s.tolist() == [1.0, 4.0]


def test_many_offsets_are_taken_together_with_their_neighbours() -> None:
    transfers = Transfers.of([group([float(number) for number in range(20)])], Profile(40.0, 0.0, 1.0))
    assert len(transfers.group_of) == MAX_TRANSFERS
    assert transfers.transfer_of.tolist() == sorted(transfers.transfer_of.tolist())
    assert (transfers.due_s > transfers.release_s).all()
