"""Long answers come in pages of bounded size, made a few at a time, and never hold the event loop for long."""

import asyncio
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from controller.api.errors import BusyError
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.explanation import Explainer
from controller.api.operations.explanations import Explanations
from controller.api.operations.methods import LIST_FLOWS, LIST_JOBS
from controller.api.operations.pages import PAGE_BYTES, PAGE_STATES, Turns, pages
from tests.controller.api.operations.many_jobs import decision_for_many


def jobs(number: int, hosts: tuple[str, ...] = ()) -> Iterator[wire.JobState]:
    return (wire.JobState(name=f"job-{each}", hosts=hosts) for each in range(number))


@pytest.mark.parametrize("is_pure", [False, True])
@pytest.mark.parametrize("number", [0, 1, PAGE_STATES, 3 * PAGE_STATES + 7])
def test_pages_have_all_states_in_order(number: int, is_pure: bool) -> None:
    async def listed() -> list[int]:
        found = [page async for page in pages(LIST_JOBS, jobs(number), Turns(), is_pure=is_pure)]
        assert [state.name for page in found for state in page.states] == [f"job-{each}" for each in range(number)]
        return [len(page.states) for page in found]

    sizes = asyncio.run(listed())
    assert all(0 < size <= PAGE_STATES for size in sizes)
    assert len(sizes) == -(-number // PAGE_STATES)


@pytest.mark.parametrize("is_pure", [False, True])
def test_pages_of_long_states_are_short_all_the_same(is_pure: bool) -> None:
    hosts = tuple(f"host-{number}" for number in range(10_000))

    async def largest() -> int:
        return max([page.ByteSize() async for page in pages(LIST_JOBS, jobs(20, hosts), Turns(), is_pure=is_pure)])

    assert asyncio.run(largest()) < 2 * PAGE_BYTES


def test_states_that_may_change_are_made_in_the_loop_which_others_use_in_between() -> None:
    threads, others = set(), 0

    def states() -> Iterator[wire.JobState]:
        for state in jobs(PAGE_STATES):
            threads.add(threading.get_ident())
            yield state

    async def listed() -> None:
        nonlocal others

        async def count() -> None:
            nonlocal others
            while True:
                others += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        assert [page async for page in pages(LIST_JOBS, states(), Turns(), is_pure=False)]
        counting.cancel()

    asyncio.run(listed())
    assert threads == {threading.get_ident()}
    assert others >= 8


def test_states_of_a_decision_are_made_beside_the_loop() -> None:
    threads = set()

    def states() -> Iterator[wire.FlowState]:
        threads.add(threading.get_ident())
        yield wire.FlowState()

    async def listed() -> None:
        assert len([page async for page in pages(LIST_FLOWS, states(), Turns(), is_pure=True)]) == 1

    asyncio.run(listed())
    assert threading.get_ident() not in threads


def test_who_gets_no_turn_is_refused() -> None:
    async def crowd() -> None:
        turns = Turns(at_once=1, patience_s=0.01)
        async with turns.turn():
            with pytest.raises(BusyError, match=r"has waited 0\.01 s"):
                async with turns.turn():
                    pass
        async with turns.turn():
            pass  # the first has given its turn back

    asyncio.run(crowd())


def test_a_page_that_is_being_read_takes_no_turn() -> None:
    async def read() -> None:
        turns = Turns(at_once=1, patience_s=0.01)
        reading = pages(LIST_JOBS, jobs(2 * PAGE_STATES), turns, is_pure=False)
        await anext(reading)
        async with turns.turn():
            pass
        await reading.aclose()

    asyncio.run(read())


def test_all_who_ask_at_once_share_an_explainer_that_a_thread_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    _, decision, fabric = decision_for_many(5, seed=1)
    made_by = []
    make = Explainer.__init__

    def noted(explainer: Explainer, *arguments: object) -> None:
        made_by.append(threading.get_ident())
        partial(make, explainer)(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Explainer, "__init__", noted)

    async def ask() -> None:
        explanations = Explanations(fabric)
        found = await asyncio.gather(*(explanations.of(decision) for _ in range(12)))
        assert len(set(map(id, found))) == 1

    asyncio.run(ask())
    assert len(made_by) == 1
    assert threading.get_ident() not in made_by
