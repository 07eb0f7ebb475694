"""What `trainyard show` can show."""

from enum import StrEnum


class Shown(StrEnum):
    """What can be shown."""

    JOBS = "jobs"
    PATHS = "paths"
    LEVELS = "levels"
    RULES = "rules"
    SWITCHES = "switches"
    LINKS = "links"
    CANDIDATES = "candidates"
    LOADS = "loads"
    DROPS = "drops"
    CONTROLLER = "controller"
