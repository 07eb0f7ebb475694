"""Models as data: layers by shape, by given numbers or by measured durations, and the table of public models."""
