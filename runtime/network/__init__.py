"""What a program sends between islands, as the controller of the network is told it: no I/O, no clock."""
