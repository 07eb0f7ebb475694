"""Program switches over P4Runtime: connections, pipelines, table entries and counters."""
