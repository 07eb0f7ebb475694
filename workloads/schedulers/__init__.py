"""Job schedulers: they choose which waiting jobs start, and on which GPUs."""
