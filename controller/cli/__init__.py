"""The command ``trainyard``.

Exit status: 0 all went well, 1 a run or the controller failed, 2 the input is bad and nothing has been started.
"""

from controller.cli.application import main

__all__ = ["main"]
