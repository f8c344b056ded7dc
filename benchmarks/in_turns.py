"""Ways to do the same, timed in turns, so that a busy machine slows all of them alike."""

import statistics
import time
from collections.abc import Callable


def seconds(ways: dict[str, Callable[[], object]], times: int) -> dict[str, list[float]]:
    """Of each way and repeat; a way that returns a float has timed itself."""
    took = {name: [] for name in ways}
    for _ in range(times):
        for name, way in ways.items():
            began = time.perf_counter()
            own = way()
            took[name].append(own if isinstance(own, float) else time.perf_counter() - began)
    return took


def compare(ways: dict[str, Callable[[], object]], times: int) -> None:
    """Print the median seconds of each way, and how many times those of the first it takes."""
    medians = {name: statistics.median(took) for name, took in seconds(ways, times).items()}
    for name, median in medians.items():
        print(f"{name:20} {median:8.2f} s {median / next(iter(medians.values())):6.2f}x")
