"""Ways to do the same, timed in turns, so that a busy machine slows all of them alike."""

import resource
import statistics
import time
from collections.abc import Callable


def processor() -> float:
    """Seconds of processor time so far, of this process and of those it has waited for."""
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + others.ru_utime + others.ru_stime


def timed(
    ways: dict[str, Callable[[], object]], times: int
) -> dict[str, list[tuple[float, float]]]:
    """Of each way and repeat the seconds by the clock and of the processor; a way that returns a float timed itself."""
    took = {name: [] for name in ways}
    for _ in range(times):
        for name, way in ways.items():
            began, used = time.perf_counter(), processor()
            own = way()
            both = time.perf_counter() - began, processor() - used
            took[name].append((own, own) if isinstance(own, float) else both)
    return took


def compare(ways: dict[str, Callable[[], object]], times: int) -> None:
    """Print the median seconds of each way, and how many times those of the first it takes."""
    medians = {name: statistics.median(took)[0] for name, took in timed(ways, times).items()}
    for name, median in medians.items():
        print(f"{name:20} {median:8.2f} s {median / next(iter(medians.values())):6.2f}x")
