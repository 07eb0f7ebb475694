"""Names are sorted as people count."""

from topologies.names import natural_key


def test_numbers_in_names_count_by_value() -> None:
    names = ["", "7", "10", "a", "a1", "a2b9", "a2b10", "a09", "a9", "a10", "a10.1", "b", "b" + 5000 * "9"]
    assert sorted(set(names), key=natural_key) == names
    assert len({natural_key(name) for name in names}) == len(names)
