"""Programs of the runtime over many islands, as jobs of the simulator: traced by no client, run on no device."""
