"""Ways to do the same, timed in turns, so that a busy machine slows all of them alike."""

import statistics
import time
from collections.abc import Callable


def compare(ways: dict[str, Callable[[], object]], times: int) -> None:
    """Print the median seconds of each way, and how many times those of the first it takes."""
    seconds = {name: [] for name in ways}
    for _ in range(times):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - began)
    base = statistics.median(seconds[next(iter(ways))])
    for name, took in seconds.items():
        print(f"{name:20} {statistics.median(took):8.2f} s {statistics.median(took) / base:6.2f}x")
