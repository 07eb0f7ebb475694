"""A program in a host has its own exit status, gets every signal once, and ends with its owner only."""

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.patience import PATIENCE_S
from tests.topologies.namespaces.owners import Marks, wait_until
from topologies.namespaces import enter
from topologies.namespaces.fabric_namespaces import FabricNamespaces

_COUNTING = """
import signal, sys
interrupts = 0
def count(number, frame):
    global interrupts
    interrupts += 1
def tell(number, frame):
    print(interrupts, "interrupts", flush=True)
    sys.exit(5)
signal.signal(signal.SIGINT, count)
signal.signal(signal.SIGTERM, tell)
print("counting", flush=True)
while True:
    signal.pause()
"""


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@contextmanager
def _none_ignored() -> Iterator[None]:
    """What is started here ignores no signal; in the background a shell has commands ignore SIGINT."""
    before = {
        number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _counter(namespaces: FabricNamespaces) -> subprocess.Popen[str]:
    """A program in a process group with no other than those between, which tells at SIGTERM how many SIGINTs it got."""
    with _none_ignored():
        process = subprocess.Popen(
            namespaces.command("h0", sys.executable, "-c", _COUNTING),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    assert process.stdout.readline() == "counting\n"
    return process


def test_the_exit_status_is_the_commands(namespaces: FabricNamespaces) -> None:
    for status in (0, 1, 77):
        assert _run(*namespaces.command("h0", "sh", "-c", f"exit {status}")).returncode == status
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE):
        assert _run(*namespaces.command("h0", "sh", "-c", f"kill -{number} $$")).returncode == 128 + number


def test_a_command_that_does_not_exist_is_named(namespaces: FabricNamespaces) -> None:
    for line in (namespaces.command("h0", "no-such-command", "-x"), namespaces.outside("no-such-command", "-x")):
        ended = _run(*line)
        assert (ended.returncode, ended.stdout) == (127, "")
        assert ended.stderr == "no-such-command: No such file or directory\n"


def test_arguments_pass_as_they_are(namespaces: FabricNamespaces) -> None:
    given = ["--", "-x", "--owner", "1", "", "a b", "$HOME"]
    assert _run(*namespaces.command("h0", "printf", "%s|", *given)).stdout == "".join(f"{word}|" for word in given)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_passed_on(namespaces: FabricNamespaces, number: signal.Signals) -> None:
    with _none_ignored():
        run = subprocess.Popen(namespaces.command("h0", "sh", "-c", "echo; exec sleep 1000"), stdout=subprocess.PIPE)
    try:
        assert run.stdout is not None
        run.stdout.readline()
        run.send_signal(number)
        assert run.wait(PATIENCE_S) == 128 + number
    finally:
        run.kill()
        run.communicate()


def test_no_signal_is_lost_while_a_program_starts(namespaces: FabricNamespaces) -> None:
    for delay_ms in range(0, 60, 4):
        process = subprocess.Popen(namespaces.command("h0", "sleep", "1000"))
        time.sleep(delay_ms / 1000)
        process.terminate()
        assert process.wait(PATIENCE_S) in (-signal.SIGTERM, 128 + signal.SIGTERM)


def test_a_signal_to_the_whole_process_group_arrives_once(namespaces: FabricNamespaces) -> None:
    with _counter(namespaces) as process:
        for number in (signal.SIGINT, signal.SIGTERM):
            os.killpg(process.pid, number)
        assert process.stdout is not None
        assert process.stdout.read() == "1 interrupts\n"
        assert process.wait(PATIENCE_S) == 5


def test_a_terminals_interrupt_arrives_once(namespaces: FabricNamespaces) -> None:
    screen, terminal = pty.openpty()
    command = namespaces.command("h0", sys.executable, "-c", _COUNTING)
    with subprocess.Popen(["setsid", "--ctty", *command], stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        while b"counting" not in shown:
            shown += os.read(screen, 100)
        os.write(screen, b"\x03")
        while b"^C" not in shown:
            shown += os.read(screen, 100)
        process.terminate()
        while b"interrupts" not in shown:
            shown += os.read(screen, 100)
        assert process.wait(PATIENCE_S) == 5
    os.close(screen)
    assert b"1 interrupts" in shown


def test_a_program_that_ends_its_own_process_group_ends_no_other(namespaces: FabricNamespaces) -> None:
    command = namespaces.command("h0", "sh", "-c", "kill -TERM 0; sleep 1000")
    script = f"import subprocess; print(subprocess.run({command!r}, stdin=subprocess.DEVNULL).returncode)"
    # The command's owner is this process: that between only starts it.
    assert _run(sys.executable, "-c", script).stdout == f"{128 + signal.SIGTERM}\n"


def test_a_signal_that_the_owner_ignores_is_the_commands_to_ignore(namespaces: FabricNamespaces) -> None:
    with subprocess.Popen(
        ["nohup", *namespaces.command("h0", "sh", "-c", "echo; read line; exit 3")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        process.communicate(b"\n")
        assert process.returncode == 3


def test_a_program_outlives_the_thread_that_started_it(namespaces: FabricNamespaces) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        started.append(subprocess.Popen(namespaces.command("h0", "cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    said, _ = started[0].communicate(b"alive", PATIENCE_S)
    assert (said, started[0].returncode) == (b"alive", 0)


def test_a_program_may_be_started_by_another(namespaces: FabricNamespaces) -> None:
    assert _run("sh", "-c", '"$@"; exit 4', "sh", *namespaces.command("h0", "true")).returncode == 4


def test_nothing_starts_for_an_owner_that_has_ended() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    started = _run(sys.executable, "-I", "-S", enter.__file__, "--owner", str(ended.pid), "--", "echo", "started")
    assert (started.returncode, started.stdout, started.stderr) == (1, "", "the owner has ended\n")


def test_a_namespace_that_is_gone_is_named(namespaces: FabricNamespaces) -> None:
    command = [sys.executable, "-I", "-S", enter.__file__, "--owner", str(os.getpid()), "--network", "absent"]
    ended = _run(*command, "--", "true")
    assert (ended.returncode, ended.stderr) == (1, "/run/netns/absent: No such file or directory\n")
    assert _run(*namespaces.command("h0", "true")).returncode == 0


def test_daemons_end_with_the_command(namespaces: FabricNamespaces) -> None:
    marks = Marks()
    command = namespaces.command("h0", "sh", "-c", "setsid sleep 1000 & (sleep 1000 &); exit 6")
    assert subprocess.run(command, env=marks.environment, timeout=PATIENCE_S, check=False).returncode == 6
    wait_until(lambda: not marks.processes())


def test_a_command_has_no_files_but_those_it_is_given(namespaces: FabricNamespaces) -> None:
    reading, writing = os.pipe()
    listing = "import os; print(sorted(int(name) for name in os.listdir('/proc/self/fd')))"
    command = namespaces.command("h0", sys.executable, "-c", listing)
    ended = subprocess.run(command, pass_fds=[writing], capture_output=True, text=True, check=True)
    os.close(reading)
    os.close(writing)
    given = sorted({0, 1, 2, writing})
    listed = [number for number in range(writing + 2) if number not in given][:1]
    assert ended.stdout == f"{sorted(given + listed)}\n"  # and that of the folder which it lists
