"""Accounts of clients that hold arrays together."""

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from runtime.arrays import ArraySpec
from runtime.lowering.assign import AT_CLIENT
from runtime.server.accounts import Account, HeldArray, Ledger
from runtime.server.channel import Channel
from runtime.server.settings import ClientSettings

STEPS = st.sampled_from(["make", "make", "open", "need no more", "publish", "withdraw", "end"])


def accounts() -> list[Account]:
    """Two connections of one client, and one of another."""
    one, other = (Ledger(ClientSettings(name, name)) for name in ("one", "other"))
    return [Account(number, ledger, cast("Channel", None)) for number, ledger in enumerate((one, one, other))]


@given(st.data())
def test_each_array_is_charged_once_to_the_first_who_holds_it(data: st.DataObject) -> None:
    connected = accounts()
    ledgers = {each.ledger for each in connected}
    published: list[tuple[Account, int]] = []
    for handle in range(data.draw(st.integers(0, 25))):
        account = data.draw(st.sampled_from(connected))
        step = data.draw(STEPS)
        if step == "make":
            spec = ArraySpec((data.draw(st.integers(0, 9)),), "int8")
            account.hold(handle, HeldArray(spec, AT_CLIENT, None, size_bytes=spec.size_bytes))
        elif step == "open" and published:
            maker, number = data.draw(st.sampled_from(published))
            account.hold(handle, maker.arrays[number])
        elif step == "need no more":
            for free in account.needs_no_more(data.draw(st.lists(st.sampled_from(range(26)), unique=True))):
                account.let_go(free)
        elif step == "publish" and account.arrays:
            number = data.draw(st.sampled_from(sorted(account.arrays)))
            account.pin(number)
            published.append((account, number))
        elif step == "withdraw" and published:
            maker, number = published.pop(data.draw(st.integers(0, len(published) - 1)))
            if maker.unpin(number):
                maker.let_go(number)
        elif step == "end" and len(connected) > 1:
            connected.remove(account)
            published = [each for each in published if each[0] is not account]
            for number in tuple(account.arrays):
                account.let_go(number)
        held = {id(array): array for each in connected for array in each.arrays.values()}
        for ledger in ledgers:
            mine = [array for array in held.values() if array.holders[0][0].ledger is ledger]
            assert ledger.held_bytes == sum(array.size_bytes for array in mine)
            assert ledger.arrays == sum(len(each.arrays) for each in connected if each.ledger is ledger)
        for array in held.values():
            assert all(holder.arrays[number] is array for holder, number in array.holders)
        assert all(maker.arrays[number] for maker, number in published)
