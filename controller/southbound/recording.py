"""A Southbound without switches: it remembers what they would be told."""

from controller.southbound.rules import RulesBySwitch


class RecordingSouthbound:
    """Switches that are always there and accept everything; ``written`` holds the rules of every write, in order."""

    def __init__(self) -> None:
        self.written: list[RulesBySwitch] = []

    async def write(self, rules: RulesBySwitch) -> None:
        """See Southbound."""
        self.written.append(rules)

    async def caught_up(self) -> None:
        """See Southbound."""
