"""``python -m controller`` is the command ``trainyard``."""

from controller.cli import main

main()
