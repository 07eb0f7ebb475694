"""Program switches: the protocol that the planner uses, and its implementations."""
