"""How long switches count bytes before they tell how many there were."""

WINDOW_US = 1 << 14
"""Length of these windows, unless an operator has changed table utilisation_window."""
