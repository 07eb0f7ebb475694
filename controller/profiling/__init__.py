"""Jobs that tell nothing of themselves, profiled from what switches count."""
