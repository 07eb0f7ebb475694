"""The file of a survey: where the switches are."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from controller.access.tls_files import TlsFiles
from controller.switch_addresses import SwitchAddress, check_local


class SurveyConfig(BaseModel):
    """Where the switches of a fabric are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    switches: Annotated[tuple[SwitchAddress, ...], Field(min_length=1)]
    switch_tls: TlsFiles | None = None
    """The files for TLS with switches, P4Runtime and gNMI; None: plain text."""
    insecure: bool = False
    """Whether plain text is allowed with switches that are reached over the network."""

    @model_validator(mode="after")
    def _switches_are_told_apart_and_reached_safely(self) -> Self:
        names = [switch.name for switch in self.switches]
        if len(names) != len(set(names)):
            raise ValueError("switches: a name is listed twice")
        if speaking := [switch.name for switch in self.switches if switch.openflow is not None]:
            raise ValueError(f"switches: a survey asks by P4Runtime, and {', '.join(speaking)} speak OpenFlow")
        if self.switch_tls is None and not self.insecure:
            check_local(self.switches)
        return self
