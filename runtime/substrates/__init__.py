"""Where executors come from: processes on this machine, or whatever else starts them."""
