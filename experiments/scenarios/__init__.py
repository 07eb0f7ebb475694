"""One scenario on any back end: the run loop, its networks, its controllers and its results.

``backend.run_on`` runs a scenario; ``run_loop`` is the loop that every back end shares.
"""
