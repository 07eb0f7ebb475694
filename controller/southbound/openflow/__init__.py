"""Switches that speak OpenFlow: 1.3 with any, 1.5 where the switch has it, as Open vSwitch does."""
