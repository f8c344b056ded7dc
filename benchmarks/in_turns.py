"""Ways to do the same, timed in turns, so that a busy machine slows all of them alike."""

import resource
import statistics
import time
from collections.abc import Callable


def processor() -> float:
    """Seconds of processor time so far, of this process and of those it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(
    ways: dict[str, Callable[[], object]], times: int
) -> dict[str, list[tuple[float, float]]]:
    """Of each way and repeat the seconds by the clock and of the processor.

    A way that returns a float timed itself.
    """
    took = {name: [] for name in ways}
    for _ in range(times):
        for name, way in ways.items():
            began = time.perf_counter()
            began_processor = processor()
            result = way()
            seconds = time.perf_counter() - began
            processor_seconds = processor() - began_processor
            if isinstance(result, float):
                seconds = processor_seconds = result
            took[name].append((seconds, processor_seconds))
    return took


def compare(ways: dict[str, Callable[[], object]], times: int) -> None:
    """Print the median seconds of each way, and how many times those of the first it takes."""
    medians = {name: statistics.median(took)[0] for name, took in timed(ways, times).items()}
    for name, median in medians.items():
        print(f"{name:20} {median:8.2f} s {median / next(iter(medians.values())):6.2f}x")
