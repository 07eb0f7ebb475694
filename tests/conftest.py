"""What all tests share."""

from hypothesis import settings

# A deadline would measure the machine, not the code.
settings.register_profile("trainyard", deadline=None)
settings.load_profile("trainyard")
