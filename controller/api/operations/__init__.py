"""What operators see of a running controller: its jobs, flows, rules and switches, and the reasons of its decisions."""
