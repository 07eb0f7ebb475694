"""Random failures of everything at once: controller, switches and jobs in one process, which a seed replays."""
