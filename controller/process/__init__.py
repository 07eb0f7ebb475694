"""The controller as a process: the daemon, and the controller that is active in it."""
