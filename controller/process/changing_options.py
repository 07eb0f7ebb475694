"""The configuration in force, for those that ask for it at every call."""

from dataclasses import dataclass

from controller.access.options import Quotas
from controller.config import ControllerConfig


@dataclass(slots=True)
class ChangingOptions:
    """The configuration in force: another one after a reload."""

    config: ControllerConfig

    def quotas_of(self, tenant: str) -> Quotas:
        """The quotas of a tenant now."""
        return self.config.quotas_of(tenant)
