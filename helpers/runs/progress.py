"""Progress bars: plain tqdm, so that no widget state gets into a notebook; silent under CI and with TQDM_DISABLE."""

import os
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def progress_bar(iterable: Iterable | None = None, *, progress: bool = True, **options: Any) -> tqdm:
    """A bar that vanishes when done. progress: False shows none. options: of :class:`tqdm.tqdm`."""
    off = not progress or bool(os.environ.get("CI") or os.environ.get("TQDM_DISABLE"))
    return tqdm(iterable, disable=off, leave=False, **options)
