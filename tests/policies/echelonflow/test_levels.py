from policies.echelonflow.levels import levels_by_layer


def test_spare_levels_go_where_most_stages_share_one() -> None:
    assert levels_by_layer([4, 2], 4) == [3, 1]
    assert levels_by_layer([2, 6, 3], 6) == [1, 3, 2]
    assert levels_by_layer([1, 2], 8) == [1, 2], "no more levels than stages"
