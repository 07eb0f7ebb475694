"""What the first rank prints."""

from experiments.scenarios.real_hosts.programs import REPORT
from hostlib.torch.iterations import Iteration
from hostlib.torch.lines import iteration_line, registered_line


def test_a_run_reads_when_an_iteration_has_ended_and_how_long_it_took() -> None:
    line = iteration_line(3, Iteration(1_000_000_000, 2_500_000_000, ()), 2_750_000_000)
    assert line == "trainyard: iteration 3 took 1.5000 s, 0.2500 s ago"
    report = REPORT.search(line.encode())
    assert report is not None
    assert (float(report["took_s"]), float(report["ago_s"])) == (1.5, 0.25)


def test_a_registered_job_says_its_levels_and_whom_to_ask() -> None:
    line = registered_line("gpt", ["unix:/c.sock", "b:1"], {"data 0": 6, "tensor 1": 7})
    assert line == (
        "job gpt is registered with unix:/c.sock, b:1: data 0 at level 6, tensor 1 at level 7 (7 is the most urgent); "
        "why: trainyard explain gpt --controller unix:/c.sock"
    )
    assert "the first rank sends nothing; why" in registered_line("gpt", ["b:1"], {})
