"""The controller as a process: the daemon, the active controller in it, and the standby that waits to lead."""
