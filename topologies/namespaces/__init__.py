"""Network namespaces in which real programs are the hosts of a fabric."""
