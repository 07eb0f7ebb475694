"""The policies that ours are compared with."""
