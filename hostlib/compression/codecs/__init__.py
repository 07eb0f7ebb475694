"""How gradients become bytes, and bytes are added to gradients.

``sparse`` sends the largest elements (``selection``, ``indices``), ``dense`` all of them; ``values`` has the
precisions. Importing ``sparse`` or ``dense`` compiles their loops, the first time on a machine for some seconds.
"""
