"""Keep track of the links that fail: their state, flap damping, and what the log says of them."""
