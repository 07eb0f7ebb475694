import pytest
from hypothesis import given

from policies.rates.order_greedy import order_greedy
from tests.policies.rates.references import Case, cases, plain_order_greedy


def test_the_first_flow_takes_all_and_the_blocked_let_others_pass() -> None:
    case = Case([8.0, 8.0], [(0,), (0, 1), (1,)], [[0], [1], [2]], [1.0, 1.0, 1.0])
    assert order_greedy(*case.arguments).tolist() == [8.0, 0.0, 8.0]


@given(cases())
def test_agrees_with_the_plain_version(case: Case) -> None:
    assert order_greedy(*case.arguments) == pytest.approx(plain_order_greedy(case))
