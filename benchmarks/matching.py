"""Two lists of many accounts, matched: seconds of each step, and the peak of memory.

    python benchmarks/matching.py --folder outputs/bench/matching --posts a.parquet b.parquet
    python benchmarks/matching.py ... --accounts 100000 --posts-of-account 8 --nearest 20

The accounts are real: consecutive posts of the authors of posts tables, by text alone. The first
posts of an author stand in list A and the last ones in list B, as if they were two accounts. Where
there are more accounts to make than authors, an author's other posts are more accounts. Posts and
tokens are kept in the folder, so that another size does not make them again.

``python benchmarks/speed.py matching`` compares all pairs with the best ones of made vectors.
"""

import argparse
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import torch
from scipy import sparse

from helpers.accounts import two_lists
from helpers.accounts.encoder import AuthorEncoder
from helpers.accounts.reading import STORED_TOKENS, OwnPosts
from helpers.core.artifacts import make_folder
from helpers.encoders.base import Encoder
from helpers.evaluation.matching import MatchConfig, estimate_overlap, sinkhorn
from helpers.evaluation.models import Member, Model
from helpers.evaluation.scores import as_rows
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore, build_store, subset
from helpers.training.loop import device_name

MADE_TOKENS = 32  # vectors are made, so no token is read
MADE_LINE = MatchConfig(1.3, -3.0)  # log-weights of made vectors, about those that ship


def token_store(posts: list[Path], folder: Path, encoder: AuthorEncoder) -> TokenStore:
    """Return the tokens of several posts tables, whose authors are different people."""
    make_folder(folder)
    joined = folder / "posts.parquet"
    if not joined.exists():
        duckdb.execute(
            "copy (select parse_filename(filename, true) || ' ' || author as author, time, "
            "'' as topic, text from read_parquet($1, filename = true, union_by_name = true) "
            "order by author, time) to '" + str(joined).replace("'", "''") + "' (row_group_size "
            "100000)",
            [[str(path) for path in posts]],
        )
    tokenizer = encoder.tokenizer
    encode = partial(first_tokens, tokenizer)
    return build_store(
        joined, folder / "tokens", encode, [], tokenizer.fingerprint, tokenizer.vocabulary
    )


def first_tokens(tokenizer, texts):
    """The first tokens of each text, as own posts are read."""
    return [tokens[:STORED_TOKENS] for tokens in tokenizer.encode(texts)]


def made_lists(
    store: TokenStore, accounts: int, posts_of_account: int
) -> tuple[list[OwnPosts], int]:
    """Make two lists of accounts, and the number of authors who are in both.

    Parameters
    ----------
    store : posts of all authors
    accounts : number of accounts of each list
    posts_of_account : consecutive posts of one author that are an account

    Raises
    ------
    ValueError
        The posts do not make so many accounts.
    """
    rng = np.random.default_rng(0)
    pieces = store.posts_per_author() // posts_of_account
    author = np.repeat(np.arange(store.authors), pieces)
    number = np.concatenate([np.arange(count) for count in pieces])
    if len(author) < 2 * accounts:
        raise ValueError(f"the posts make {len(author):,} accounts: two lists need more")
    in_both = rng.permutation(np.flatnonzero(pieces > 1))[:accounts]
    is_first = (number == 0) & np.isin(author, in_both)
    is_last = (number == pieces[author] - 1) & np.isin(author, in_both)
    others = rng.permutation(np.flatnonzero(~is_first & ~is_last))
    missing = accounts - len(in_both)
    rows = [
        np.append(np.flatnonzero(is_first), others[:missing]),
        np.append(np.flatnonzero(is_last), others[missing : 2 * missing]),
    ]
    first_post = store.author_offsets[author] + number * posts_of_account
    lists = []
    for letter, row in zip("ab", rows, strict=True):
        posts = (first_post[row][:, None] + np.arange(posts_of_account)).ravel()
        part = subset(store, posts, np.arange(accounts + 1) * posts_of_account)
        names = np.array([f"{letter}{place}" for place in range(accounts)], object)
        lists.append(OwnPosts(part, names, False, {"columns": {"time": None}}, Path()))
    return lists, len(in_both)


def made_model(accounts: int, dimensions: int, seed: int = 0) -> tuple[Model, Samples, Samples]:
    """Make a model, queries and targets of vectors; a target is the partner of the same query."""
    generator = torch.Generator().manual_seed(seed)
    person = torch.randn(accounts, dimensions, generator=generator)
    place = np.arange(accounts)
    encoder = Encoder()
    near = Member("near", encoder, "as_norm", 0.8)
    whole = replace(near, name="whole", normaliser="s_norm", weight=0.2)
    sides = []
    for _ in range(2):
        rows = person + torch.randn(accounts, dimensions, generator=generator)
        sides.append(Samples(None, place, np.ones_like(place), place))
        rows = torch.nn.functional.normalize(rows)
        near.embeddings.put(encoder, sides[-1], MADE_TOKENS, rows)
    return Model((near, whole)), *sides


def match_all(model: Model, queries: Samples, targets: Samples) -> np.ndarray:
    """Match two lists of which all pairs are scored."""
    return matched(model.score_matrix(queries, targets, MADE_TOKENS))


def match_best(model: Model, queries: Samples, targets: Samples, nearest: int) -> sparse.coo_array:
    """Match two lists of which the pairs with the nearest vectors are scored."""
    member = model.members[0]
    rows = [member.embeddings.of(member.encoder, side, MADE_TOKENS) for side in (queries, targets)]
    pairs = two_lists.near_pairs(*rows, nearest)
    scores = model.pair_scores(queries, targets, pairs, MADE_TOKENS).astype(float)
    return matched(sparse.coo_array((scores, pairs.T), (len(queries), len(targets))))


def matched(scores: np.ndarray | sparse.coo_array) -> np.ndarray | sparse.coo_array:
    """Match two lists by a line that was not fitted."""
    return sinkhorn(scores, MADE_LINE, estimate_overlap(scores, MADE_LINE))


@contextmanager
def step(name: str) -> Iterator[None]:
    """Print the seconds of a step, and the peak of memory so far."""
    began = time.perf_counter()
    yield
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  {name:28} {seconds:8.1f} s, peak {peak:5.2f} GiB", flush=True)


def measure(encoder: AuthorEncoder, posts: list[OwnPosts], in_both: int, nearest: int) -> None:
    """Match two lists, and print the seconds of every step.

    Parameters
    ----------
    encoder : embeds and scores the accounts
    posts : both lists; the first ``in_both`` accounts of both are those of the same authors
    in_both : number of authors who are in both
    nearest : number of candidates of each account
    """
    with step("shared passages"):
        posts = two_lists.comparable_lists(*posts, encoder.kinds)
    with step("vectors"):
        galleries = two_lists.galleries_of_two(encoder, posts)
    with step("candidates by vectors"):
        vectors = [as_rows(gallery.encoder.joined_rows(gallery.rows)) for gallery in galleries]
        pairs = two_lists.near_pairs(*vectors, nearest)
    with step("pair scores"):
        scores = two_lists.score_list_pairs(galleries, pairs)
        scores = sparse.coo_array((scores, pairs.T), tuple(map(len, galleries)))
    line = galleries[0].use.match
    with step("overlap estimate"):
        overlap = estimate_overlap(scores, line)
    with step("matching"):
        probability = sinkhorn(scores, line, overlap)

    sure = int((probability.data >= 0.9).sum())
    first, second = [np.array([int(name[1:]) for name in gallery.names]) for gallery in galleries]
    row, column = pairs.T
    is_partner = (first[row] == second[column]) & (first[row] < in_both)
    print(
        f"{len(pairs):,} candidates hold {is_partner.sum():,} of {in_both:,} authors in both; "
        f"overlap {overlap:.3f}; {sure:,} pairs are called 90% and more"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--posts", required=True, nargs="+", type=Path, metavar="POSTS.parquet")
    parser.add_argument("--folder", required=True, type=Path, help="for posts and their tokens")
    parser.add_argument("--accounts", type=int, default=20_000, help="of each list")
    parser.add_argument("--posts-of-account", type=int, default=16)
    parser.add_argument("--nearest", type=int, default=two_lists.NEAREST)
    options = parser.parse_args()
    encoder = AuthorEncoder.load()
    store = token_store(options.posts, options.folder, encoder)
    posts, in_both = made_lists(store, options.accounts, options.posts_of_account)
    print(f"{options}, {device_name(torch.device('cpu'))}", flush=True)
    measure(encoder, posts, in_both, options.nearest)


if __name__ == "__main__":
    main()
