"""What the controller serves over HTTP: its health, metrics, and a page."""
