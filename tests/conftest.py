"""Threads: cores divided by test processes, here and in the processes that tests start."""

import os

# Set before torch is imported: two processes of two threads on two cores run several times slower than of one.
THREADS = max(1, (os.cpu_count() or 1) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
