"""The state that the page shows: rows in sections, and what has changed last, encoded once for all clients.

Example::

    journal = Journal()
    journal.replace("jobs", {"gpt": {"rank": 0}})
    journal.commit()
    journal.message(None)  # all of it
    journal.message(journal.number - 1)  # what has changed since
"""

import json
from collections import deque
from collections.abc import Mapping
from itertools import islice

_KEPT = 50
"""Changes that are kept: ten seconds of them, for clients that come back."""

_Rows = dict[str, dict[str, object]]
"""By section and key, a row, or None in the place of one that has been removed."""
_Keys = dict[str, dict[str, None]]
"""By section, the keys of rows, in order."""


class Journal:
    """Rows by section and key. What is set or removed becomes a change with the next ``commit``.

    Rows must never change afterwards, and be made of what JSON has. ``number`` counts the changes.
    """

    def __init__(self) -> None:
        self.number = 0
        self._rows: _Rows = {}
        self._changes: deque[_Keys] = deque(maxlen=_KEPT)
        self._open: _Keys = {}
        self._messages: dict[int | None, str] = {}
        """Those to the present state, by the number of the state that a client has."""

    def replace(self, section: str, rows: Mapping[str, object]) -> None:
        """Have a section hold these rows alone."""
        for key in self._rows.get(section, {}).keys() - rows.keys():
            self.remove(section, key)
        held = self._rows.setdefault(section, {})
        for key, row in rows.items():
            if key not in held or (held[key] is not row and held[key] != row):
                self.set(section, key, row)

    def set(self, section: str, key: str, row: object) -> None:
        """Set a row."""
        self._rows.setdefault(section, {})[key] = row
        self._open.setdefault(section, {})[key] = None

    def remove(self, section: str, key: str) -> None:
        """Remove a row."""
        del self._rows[section][key]
        self._open.setdefault(section, {})[key] = None

    def keep_last(self, section: str, most: int) -> None:
        """Remove the rows that were set first, but for ``most`` of them."""
        for key in list(self._rows.get(section, {}))[:-most]:
            self.remove(section, key)

    def commit(self) -> bool:
        """Make what was set and removed one change; returns whether there was anything."""
        if not self._open:
            return False
        self._changes.append(self._open)
        self._open = {}
        self.number += 1
        self._messages = {}
        return True

    def message(self, since: int | None) -> str:
        """The JSON that leads a client from state ``since`` to the present one: all rows, where it is None or too old.

        ``full`` says that all rows are there, and ``sections`` has them; null is a row that has been removed.
        """
        missed = None if since is None else self.number - since
        if missed is None or not 0 <= missed <= len(self._changes):
            since = None
        if since not in self._messages:
            told = self._whole() if since is None else self._changed(self.number - since)
            # All at once: to encode rows one by one takes several times as long.
            self._messages[since] = json.dumps({"full": since is None, "sections": told}, separators=(",", ":"))
        return self._messages[since]

    def _whole(self) -> _Rows:
        return {section: rows for section, rows in self._rows.items() if rows}

    def _changed(self, missed: int) -> _Rows:
        """The rows of the last changes."""
        keys: _Keys = {}
        for change in islice(self._changes, len(self._changes) - missed, None):
            for section, changed in change.items():
                keys.setdefault(section, {}).update(changed)
        return {section: {key: self._rows[section].get(key) for key in changed} for section, changed in keys.items()}
