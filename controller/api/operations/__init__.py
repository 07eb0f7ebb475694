"""The operations service: operators list jobs, flows, rules and switches, and ask for the reasons of a decision."""
