"""Changes are told once; who has missed some gets them together, and who has missed too many gets everything."""

import json
from typing import Any

from controller.web.page.journal import Journal


def _message(journal: Journal, since: int | None) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(journal.message(since))
    return message


def _with(*names: str) -> Journal:
    journal = Journal()
    journal.replace("jobs", {name: {"rank": rank} for rank, name in enumerate(names)})
    assert journal.commit()
    return journal


def test_a_newcomer_gets_all_rows() -> None:
    assert _message(_with("gpt", "bert"), None) == {
        "full": True,
        "sections": {"jobs": {"gpt": {"rank": 0}, "bert": {"rank": 1}}},
    }


def test_only_what_changes_is_told() -> None:
    journal = _with("gpt", "bert", "vit")
    journal.replace("jobs", {"gpt": {"rank": 0}, "vit": {"rank": 1}})
    assert journal.commit()
    told = _message(journal, journal.number - 1)
    assert told == {"full": False, "sections": {"jobs": {"bert": None, "vit": {"rank": 1}}}}


def test_equal_rows_are_no_change() -> None:
    journal = _with("gpt")
    journal.replace("jobs", {"gpt": {"rank": 0}})
    assert not journal.commit()
    assert journal.number == 1


def test_missed_changes_come_together_the_last_of_each_row() -> None:
    journal = _with("gpt")
    for rank in range(1, 4):
        journal.replace("jobs", {"gpt": {"rank": rank}})
        journal.commit()
    assert _message(journal, 1) == {"full": False, "sections": {"jobs": {"gpt": {"rank": 3}}}}


def test_who_has_missed_too_much_or_comes_from_the_future_gets_everything() -> None:
    journal = _with("gpt")
    for rank in range(1, 100):
        journal.replace("jobs", {"gpt": {"rank": rank}})
        journal.commit()
    assert _message(journal, 1)["full"]
    assert _message(journal, journal.number + 5)["full"]
    assert not _message(journal, journal.number - 50)["full"]


def test_the_oldest_rows_of_a_section_go_first() -> None:
    journal = Journal()
    for number in range(5):
        journal.set("events", str(number), {})
    journal.keep_last("events", 2)
    journal.commit()
    assert list(_message(journal, None)["sections"]["events"]) == ["3", "4"]


def test_hostile_keys_and_values_stay_text() -> None:
    journal = Journal()
    name = '"},"x":{"</script>\n\u202e'
    journal.replace("jobs", {name: {"why": name}})
    journal.commit()
    text = journal.message(None)
    assert "\n" not in text
    assert json.loads(text)["sections"]["jobs"] == {name: {"why": name}}
