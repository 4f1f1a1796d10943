"""Threads: cores divided by test processes, here and in the processes that tests start. And the table of faults."""

import os
import sys
from pathlib import Path

# Set before torch is imported: two processes of two threads on two cores run several times slower than of one.
THREADS = max(1, (os.cpu_count() or 1) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
sys.path.insert(0, str(Path(__file__).parent / "faults"))


def pytest_terminal_summary(terminalreporter, config):
    """With `-m fault`: the table of faults, and how many inputs its tests have tried, as they counted them."""
    if config.option.markexpr != "fault" or config.option.collectonly:
        return
    from fault_table import table

    outcomes = {}
    for state in ("passed", "skipped", "failed", "error"):
        for report in terminalreporter.stats.get(state, []):
            inputs = dict(report.user_properties).get("inputs", 1)
            outcomes[report.nodeid] = (state, inputs if state == "passed" else 0)
    for line in table(outcomes)[0]:
        terminalreporter.write_line(line)
