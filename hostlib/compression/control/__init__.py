"""What is sent next, decided from what the last transmissions took: pure functions, the same on every rank."""
