"""Random failures of controller, switches and jobs together, in one process; a seed replays them."""
