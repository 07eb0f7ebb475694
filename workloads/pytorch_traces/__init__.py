"""What was recorded of each rank of a PyTorch job, as Chakra execution traces."""
