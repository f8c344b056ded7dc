"""Progress bars: plain tqdm, so that no widget state gets into a notebook; silent under CI and with TQDM_DISABLE."""

import os

from tqdm import tqdm


def progress_bar(iterable=None, *, progress: bool = True, **options) -> tqdm:
    """A bar that vanishes when done. progress: False shows none. options: of :class:`tqdm.tqdm`."""
    off = not progress or bool(os.environ.get("CI") or os.environ.get("TQDM_DISABLE"))
    return tqdm(iterable, disable=off, leave=False, **options)
