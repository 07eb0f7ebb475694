"""Change a running controller to another configuration: what can change, what that does, and what is refused."""
