"""Synthetic token stores of any size: 43 tokens a post on average, 300 posts an author.

``python benchmarks/speed.py store`` measures how long one takes to open, and a batch to draw.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.tokens.samplers import AuthorSampler, make_sampler
from helpers.tokens.store import FILES, SUFFIX, file_checksum

PART = 10**6


def write(folder: Path, posts: int, per_author: int = 300, tokens: int = 43):
    """A store of so many posts, written in parts."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    files = {name: open(folder / f"{name}.{SUFFIX[kind]}", "wb") for name, kind in FILES.items()}
    end = np.zeros(1, "i8")
    files["post_offsets"].write(end.tobytes())
    for begin in range(0, posts, PART):
        count = min(PART, posts - begin)
        offsets = end[-1:] + rng.poisson(tokens, count).cumsum()
        end = offsets
        files["post_offsets"].write(offsets.astype("i8").tobytes())
        files["hour"].write(rng.integers(0, 24, count, "u1").tobytes())
        files["time"].write(np.arange(begin, begin + count, dtype="i8").tobytes())
        files["topic"].write(rng.integers(0, 2049, count, "u2").tobytes())
        files["tokens"].write(rng.bytes(int(end[-1]) * 2 - files["tokens"].tell()))
    authors = np.append(np.arange(0, posts, per_author), posts).astype("i8")
    files["author_offsets"].write(authors.tobytes())
    counts = {}
    for name, file in files.items():
        counts[name] = file.tell() // np.dtype(FILES[name]).itemsize
        file.close()
    names = pa.table({"author": [str(number) for number in range(len(authors) - 1)]})
    pq.write_table(names, folder / "authors.parquet")
    sums = {path.name: file_checksum(path) for path in folder.iterdir()}
    meta = {"fingerprint": "benchmark", "counts": counts, "topics": [], "sha256": sums}
    (folder / "store.json").write_text(json.dumps(meta))


def first_batch(store):
    """A sampler, and whatever it finds out about a store before its first batch is there."""
    sampler = make_sampler(AuthorSampler(), store, 0)
    sampler(0)
    return sampler
