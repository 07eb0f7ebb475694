"""What the connections have sent that are marked with levels."""

import socket

from hostlib.torch.levels import Levels

_PAYLOAD = b"gradients"


def test_what_a_connection_has_sent_counts_after_its_end() -> None:
    levels = Levels()
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as connection:
            ends = (*connection.getsockname(), *connection.getpeername())
            levels.apply(1, [(0, "data 0", ends, 5)], iteration_s=None)
            connection.sendall(_PAYLOAD)
            assert levels.counters() == (len(_PAYLOAD), 0)
        assert levels.counters() == (len(_PAYLOAD), 0)
        # So it does beside the connections of a later Plan.
        with socket.create_connection(server.getsockname()) as connection:
            ends = (*connection.getsockname(), *connection.getpeername())
            levels.apply(2, [(0, "data 0", ends, 5)], iteration_s=None)
            connection.sendall(_PAYLOAD)
            assert levels.counters() == (2 * len(_PAYLOAD), 0)
