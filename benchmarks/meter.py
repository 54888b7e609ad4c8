"""Seconds and memory of one task in the process that runs it; only Python is needed, so the package may import it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def peak_kilobytes() -> int:
    """Peak of this process's resident memory; unlike ``ru_maxrss`` it begins anew with the process."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) if found else 0


def measure(task: Callable[[], Any]) -> None:
    """Run the task and print its wall seconds and how far it raised the peak of memory, in MB."""
    before = peak_kilobytes()
    start = time.perf_counter()
    task()
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak_mb": (peak_kilobytes() - before) / 1024}))
