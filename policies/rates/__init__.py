"""Rate allocators: pure functions from a network and an order of its active flows to the rate of every flow."""
