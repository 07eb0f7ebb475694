"""Host library for PyTorch jobs: the extra ``trainyard-hostlib[torch]``."""
