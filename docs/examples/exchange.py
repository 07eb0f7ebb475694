"""A program of two ranks: each iteration computes for 0.2 s, then rank 1 sends rank 0 two megabytes over TCP."""

import os
import socket
import sys
import time

PORT, SIZE_BYTES = 5000, 2_000_000

peers, iterations = sys.argv[1].split(","), int(sys.argv[2])
rank = int(os.environ["RANK"])
if rank == 0:
    connection, _ = socket.create_server(("", PORT)).accept()
else:
    connection = None
    while connection is None:
        try:
            connection = socket.create_connection((peers[0], PORT), timeout=1)
        except OSError:
            time.sleep(0.1)
    connection.settimeout(None)
for iteration in range(iterations):
    began_s = time.monotonic()
    time.sleep(0.2)
    if rank == 0:
        left_bytes = SIZE_BYTES
        while left_bytes:
            left_bytes -= len(connection.recv(min(left_bytes, 65536)))
        print(f"iteration {iteration} took {time.monotonic() - began_s:.4f} s", flush=True)
    else:
        connection.sendall(bytes(SIZE_BYTES))
