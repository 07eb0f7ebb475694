"""``trainyard evaluate NAME``: a module for every evaluation, and in ``shared`` what they have in common."""
