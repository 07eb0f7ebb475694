"""What goes down and comes back during a run, as a scenario's ``events:`` say."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from workloads.values import Name, NonNegativeCount, ScenarioModel, Seconds


class ElementState(StrEnum):
    """Whether a part of the cluster is there."""

    DOWN = "down"
    UP = "up"


class ScenarioEvent(ScenarioModel):
    """Something goes down, or comes back: a cable, a switch, a host or the controller, of which exactly one is named.

    A cable is named by its ends in ``link``, and by its place among those ``parallel`` to it. Controllers are numbered
    from 0; there is one.
    """

    at_s: Seconds
    link: tuple[Name, Name] | None = None
    parallel: NonNegativeCount = 0
    switch: Name | None = None
    host: Name | None = None
    controller: Annotated[int, Field(strict=True, ge=0, le=0)] | None = None
    state: ElementState

    @model_validator(mode="after")
    def _names_one_thing(self) -> Self:
        if sum(getattr(self, key) is not None for key in EVENT_KEYS) != 1:
            raise ValueError(f"expected exactly one of {', '.join(EVENT_KEYS)}")
        if self.link is None and "parallel" in self.model_fields_set:
            raise ValueError("expected parallel only beside link")
        return self

    @property
    def in_words(self) -> str:
        """What happens, for people."""
        if self.link is not None:
            element = f"cable {self.link[0]} to {self.link[1]}{f' ({self.parallel})' if self.parallel else ''}"
        else:
            element = f"switch {self.switch}" if self.switch else f"host {self.host}" if self.host else "controller"
        return f"{element} {self.state}"


EVENT_KEYS = ("link", "switch", "host", "controller")
"""What an event may name."""
