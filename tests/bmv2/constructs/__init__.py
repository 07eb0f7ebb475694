"""Small P4 programs, one for each kind of construct that Trainyard's own program does not need, and BMv2's answers."""
