"""Open vSwitch as the switches of a fabric: private daemons, bridges, and queues in strict priority."""
