"""The host library as a command: ``python -m hostlib run train.py …`` runs a training script as it is, attached."""

import sys

from hostlib.launch import main

sys.exit(main(sys.argv[1:]))
