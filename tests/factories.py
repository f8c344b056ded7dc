"""Shared factories of the tests: posts tables, token stores in memory, rows of a source."""

import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import torch.nn.functional as nnf
from scipy import sparse

from helpers.encoders.base import Encoder
from helpers.sources import Post, demo, open_source
from helpers.tokens.batch import PAD, Batch, Samples
from helpers.tokens.store import TokenStore, build_store
from helpers.tokens.tokenizer import Bytes


def posts_table(path, rows, row_group_size=7):
    """Write rows of (author, seconds since 1970, topic, text), in the given order, to a file."""
    author = [row[0] for row in rows]
    time = [row[1] for row in rows]
    topic = [row[2] for row in rows]
    text = [row[3] for row in rows]
    table = pa.table(
        {
            "author": pa.array(author, pa.string()),
            "time": pa.array(time, pa.timestamp("s", "UTC")),
            "topic": pa.array(topic, pa.string()),
            "text": pa.array(text, pa.string()),
        }
    )
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def store_in_memory(
    counts, seed=0, longest=12, vocabulary=2**16, topics=5, lengths=None, habits=False
):
    """Return a store in memory from the number of posts of each author.

    ``lengths`` are the numbers of tokens of the posts, drawn where they are not given.
    Every token tells which post it belongs to as long as there are fewer than ``vocabulary`` posts:
    token = post. With ``habits`` an author's tokens and hours come from a few of his own, so that
    he can be learned.
    """
    rng = np.random.default_rng(seed)
    counts = np.asarray(counts)
    posts = counts.sum()
    lengths = rng.integers(0, longest + 1, posts) if lengths is None else np.asarray(lengths)
    author = np.repeat(np.arange(len(counts)), counts)
    post = np.repeat(np.arange(posts), lengths)
    tokens = post % vocabulary
    hour = rng.integers(0, 24, posts)
    topic = rng.integers(0, topics, posts)
    if habits:
        tokens_of_author = rng.integers(0, vocabulary, (len(counts), 6))
        tokens = tokens_of_author[author[post], rng.integers(0, 6, len(post))]
        hour = (author * 7 + rng.integers(0, 3, posts)) % 24
    post_offsets = np.concatenate([[0], np.cumsum(lengths)])
    author_offsets = np.concatenate([[0], np.cumsum(counts)])
    # time grows from post to post
    days = np.random.default_rng(seed + 1).integers(1, 9, posts).cumsum()
    time = (days * 24 + hour) * 3600
    meta = {"topics": [f"topic {number}" for number in range(topics - 1)]}
    return TokenStore(
        Path("nowhere"),
        meta,
        tokens.astype("u2"),
        post_offsets,
        hour.astype("u1"),
        time,
        topic.astype("u2"),
        author_offsets,
    )


def read_source(kind, location, **options):
    """(all rows, drops) of a source; the rows have no column of ids or names where none is."""
    drops = Counter()
    posts = []
    for part in open_source(kind, str(location), **options):
        posts += part.read(drops)
    rows = pd.DataFrame(posts, columns=Post._fields)
    missing = [name for name in ("id", "names") if not rows[name].any()]
    return rows.drop(columns=missing), dict(drops)


def write_table(path, frame):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif "json" in path.name:  # pandas would write 10.0 as 10
        records = frame.astype(object).where(frame.notna(), None).to_dict("records")
        write_lines(path, records)
    else:
        frame.to_csv(path, index=False)
    return path


def write_lines(path, records):
    """Write JSON lines, packed where the path ends so; a text is a line as it is."""
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    data = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_demo_csv(path, evader="demo-0013", accounts=60, posts=6000):
    """Write invented accounts as notebook 13 does: one of them came back under another name."""
    columns = ["nick", "written", "room", "message"]
    parts = demo.parts(seed=5, authors=accounts, posts=posts)
    rows = [post[:4] for part in parts for post in part.read(Counter())]
    frame = pd.DataFrame(rows, columns=columns)
    banned = frame.nick == evader
    frame.loc[banned & (frame.written > frame.written[banned].median()), "nick"] = "newcomer"
    frame["written"] = pd.to_datetime(frame.written, unit="s", utc=True)
    frame.to_csv(path, index=False)


def labelled_vectors(seed, authors=5, samples=4, dim=6, dtype=torch.float64):
    """Vectors of as many samples of each author, and labels in no order; authors overlap."""
    rng = torch.Generator().manual_seed(seed)
    centre = torch.randn(authors, dim, generator=rng, dtype=dtype).repeat_interleave(samples, 0)
    vectors = 0.7 * centre + torch.randn(authors * samples, dim, generator=rng, dtype=dtype)
    order = torch.randperm(authors * samples, generator=rng)
    return vectors[order], torch.arange(authors).repeat_interleave(samples)[order]


def uneven_vectors(seed, labels=(0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 3, 3)):
    """Vectors of authors with few and many samples; authors overlap."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.tensor(labels)
    centre = torch.randn(int(labels.max()) + 1, 6, generator=rng, dtype=torch.float64)
    noise = torch.randn(len(labels), 6, generator=rng, dtype=torch.float64)
    return 0.8 * centre[labels] + noise, labels


def random_batch(*posts, length=6, seed=1, vocabulary=40, topics=5):
    """A batch of samples of so many posts each, padded to the longest."""
    torch.manual_seed(seed)
    shape = (len(posts), max(posts))
    mask = torch.arange(shape[1]) < torch.tensor(posts)[:, None]
    tokens = torch.randint(vocabulary, (*shape, length))
    tokens[torch.arange(length) >= torch.randint(0, length + 1, shape)[..., None]] = PAD
    tokens[~mask] = PAD
    hours = torch.randint(24, shape) * mask
    topic = torch.randint(topics, shape) * mask
    times = (torch.randint(10**5, shape).cumsum(1) * 3600 * 24 + hours * 3600) * mask
    return Batch(tokens, hours, topic, mask, torch.arange(len(posts)), times)


def without_padding(batch, row):
    real = int(batch.mask[row].sum())
    sample = slice(row, row + 1)
    return Batch(
        batch.tokens[sample, :real],
        batch.hours[sample, :real],
        batch.topics[sample, :real],
        batch.mask[sample, :real],
        batch.authors[sample],
        batch.times[sample, :real],
    )


def styled_posts(authors=40, posts=40, seed=0):
    """Rows of a posts table: authors with favourite words, hours and topics."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{n:02d}" for n in range(60)])
    rows = []
    for author in range(authors):
        share = rng.dirichlet(np.full(60, 2.0))
        hour = rng.integers(24)
        topic = rng.integers(5)
        for post in range(posts):
            time = (post * 24 + (hour + rng.integers(3)) % 24) * 3600
            topic_now = topic if rng.random() < 0.7 else rng.integers(5)
            text = " ".join(rng.choice(words, 8, p=share))
            rows.append((f"a{author:02d}", int(time), f"t{topic_now}", text))
    return sorted(rows)


def styled_store(folder, topics=("t0", "t1", "t2", "t3", "t4")):
    """The posts of :func:`styled_posts` as bytes, in a store in a folder."""
    posts = posts_table(folder / "styled.parquet", styled_posts(), row_group_size=400)
    return build_store(posts, folder / "store", Bytes().encode, list(topics), "v1", 256)


class LookUp(Encoder):
    """Rows of a matrix (N, D), dense or CSR, by the first token of a sample."""

    def __init__(self, rows, unit=True):
        super().__init__()
        self.rows = rows
        self.unit = unit
        self.dim = rows.shape[1]
        self.calls = 0

    def forward(self, batch):
        self.calls += len(batch)
        rows = self.rows[batch.tokens[:, 0, 0].numpy()]
        if sparse.issparse(rows):
            return rows
        return torch.from_numpy(np.array(rows))


class HabitCounts(Encoder):
    """Unit rows: how often each hour and each topic occurs in a sample.

    With ``hours`` the hours alone.
    """

    dim = 34

    def __init__(self, hours=False):
        super().__init__()
        self.hours = hours
        self.calls = 0

    def forward(self, batch):
        self.calls += len(batch)
        parts = [(batch.hours, 24)]
        if not self.hours:
            parts.append((batch.topics, 10))
        counts = [
            (nnf.one_hot(values, size) * batch.mask[..., None]).sum(1) for values, size in parts
        ]
        return nnf.normalize(torch.cat(counts, 1).float(), dim=1)


def one_token_samples(authors, topics=None):
    """N samples of one post, whose one token is its number: what :class:`LookUp` reads."""
    authors = np.asarray(authors)
    count = len(authors)
    offsets = np.arange(count + 1)
    topics = np.zeros(count) if topics is None else np.asarray(topics)
    store = TokenStore(
        Path("nowhere"),
        {"topics": []},
        np.arange(count, dtype="u2"),
        offsets,
        np.zeros(count, "u1"),
        np.arange(count),
        topics.astype("u2"),
        offsets,
    )
    return Samples(store, np.arange(count), np.ones(count, np.int64), authors)


def unit_rows(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)


def read_posts(path):
    """rows of (author, seconds since 1970, topic, text) of a posts table, in its order."""
    table = pq.read_table(path)
    times = table["time"].cast(pa.timestamp("s", "UTC")).cast(pa.int64())
    columns = (table["author"], times, table["topic"], table["text"])
    return list(zip(*[column.to_pylist() for column in columns]))
