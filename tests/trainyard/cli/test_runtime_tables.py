from trainyard.cli.runtime_tables import network_table


def test_programs_on_the_network_show_their_plan_or_why_there_is_none() -> None:
    job = {"job": "a#1 step 3", "program": "step", "flows": 1200, "unsteered": 3, "plan": 7, "refusal": None}
    waiting = {**job, "job": "a#1 step 4", "plan": None}
    refused = {**job, "job": "a#1 step 5", "plan": 7, "refusal": "quota: no more jobs"}
    table = network_table([job, waiting, refused])
    rows = list(zip(*(column.cells for column in table.columns), strict=True))
    assert rows == [
        ("a#1 step 3", "step", "1,200", "3", "7"),
        ("a#1 step 4", "step", "1,200", "3", "none yet"),
        ("a#1 step 5", "step", "1,200", "3", "quota: no more jobs"),
    ]
