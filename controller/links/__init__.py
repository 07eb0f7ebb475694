"""What becomes of links that fail: heard from switches, damped, and kept out of everything that is led over them."""
