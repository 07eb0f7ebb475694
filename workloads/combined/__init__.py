"""Combined parallelism: one job with tensor, context, expert, pipeline and data parallelism at once."""
