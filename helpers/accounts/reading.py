"""Own posts: a file with columns of any name becomes accounts, cleaned as in notebook 01."""

import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from helpers.accounts.columns import column_types, read_columns
from helpers.accounts.encoder import AuthorEncoder
from helpers.accounts.gallery import AccountGallery
from helpers.accounts.index import VectorIndex
from helpers.accounts.passages import without_passages
from helpers.accounts.samples import (
    MAX_TOKENS,
    MIN_POSTS,
    NEWEST_POSTS,
    in_memory,
    newest_posts,
)
from helpers.cleaning.pseudonyms import pseudonym_key, pseudonymiser
from helpers.core.artifacts import fingerprint_of
from helpers.core.paths import Run
from helpers.corpus.collect import CollectConfig, collect
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore, build_store, list_topics
from helpers.training.checkpoints import read_checkpoint, save_checkpoint

MAX_ACCOUNTS = 100_000  # those with most posts
UNREADABLE_SHARE = 0.2  # of tokens for unknown letters, above which nothing is said
FULL_GALLERY = 5000  # accounts; of more, queries are compared with those that the index finds
NEAREST_OF_ALL = 4000  # accounts found by the index for all queries together
# for each query: of 5,000 accounts, 40 held 0.7 and 1000 held 0.96 of the true partners
NEAREST_OF_QUERY = 1000
COHORT_ACCOUNTS = 1000  # drawn at random beside them, to say how alike people are
STORED_POSTS = 2 * NEWEST_POSTS  # of an account that are kept in memory: two halves
STORED_TOKENS = 2 * MAX_TOKENS  # of a post: shared passages go before MAX_TOKENS are read
QUERIES = 500  # asked by default in a full gallery
FEWER_QUERIES = 100  # asked by default of more accounts
PSEUDONYM = re.compile("u[0-9a-f]{16}")


@dataclass(frozen=True)
class OwnPosts:
    """Accounts of a file.

    Parameters
    ----------
    store : TokenStore
        in memory, of the newest posts.
    names : array
        pseudonyms, by the store's author numbers.
    hours : bool
        whether times are known.
    card : dict
        what was read, dropped and left.
    vectors_path : Path
        the file in which :meth:`vectors` are kept between runs.
    """

    store: TokenStore
    names: np.ndarray
    hours: bool
    card: dict
    vectors_path: Path

    def samples(self, names: list[str]) -> Samples:
        """Return the newest posts of named accounts, to ask about."""
        listed = list(self.names)
        return newest_posts(self.store, np.array([listed.index(name) for name in names]))

    def gallery(self, encoder: AuthorEncoder, samples: Samples | None = None) -> AccountGallery:
        """Return a gallery of given samples of the store, or of all accounts' newest posts."""
        if samples is None:
            samples = newest_posts(self.store)
        return AccountGallery(encoder, samples, self.names[samples.authors], self.hours)

    def vectors(self, encoder: AuthorEncoder) -> np.ndarray:
        """Return the vectors of all accounts, (N, D) float16; they are kept for the next time."""
        weights = encoder.uses[encoder.use(False, self.hours)].weights
        fingerprint = fingerprint_of(self.card, encoder.fingerprint, weights)
        with suppress(ValueError):  # none are kept, or they are damaged
            tensors, state = read_checkpoint(self.vectors_path)
            if state["fingerprint"] == fingerprint:
                return tensors["vectors"].numpy()
        vectors = encoder.vectors(newest_posts(self.store), self.hours).astype(np.float16)
        tensors = {"vectors": torch.from_numpy(vectors)}
        save_checkpoint(self.vectors_path, tensors, {"fingerprint": fingerprint})
        return vectors

    def gallery_for(
        self, encoder: AuthorEncoder, queries: Samples, seed: int = 0
    ) -> AccountGallery:
        """Choose the gallery to ask queries in: all accounts, or of many those that matter.

        Of more than FULL_GALLERY accounts, they are those whose vectors an index finds nearest to
        one of the queries, and COHORT_ACCOUNTS drawn at random from all, whose scores s-norm uses:
        those of the nearest would hide every pair.

        Parameters
        ----------
        encoder : AuthorEncoder
            of the gallery.
        queries : Samples
            Q samples.
        seed : int
            of the draw.
        """
        samples = newest_posts(self.store)
        if len(samples) <= FULL_GALLERY:
            return self.gallery(encoder, samples)
        index = VectorIndex(self.vectors(encoder))
        of_query = max(min(NEAREST_OF_ALL // len(queries), NEAREST_OF_QUERY), 1)
        _, near = index.search(encoder.vectors(queries, self.hours), 1 + of_query)
        if queries.store is self.store:
            near = np.union1d(near, np.flatnonzero(np.isin(samples.authors, queries.authors)))
        cohort = np.random.default_rng(seed).permutation(len(samples))[:COHORT_ACCOUNTS]
        rows = np.union1d(near, cohort)
        targets = samples[rows]
        return AccountGallery(
            encoder,
            targets,
            self.names[targets.authors],
            self.hours,
            drawn=np.isin(rows, cohort),
            beyond=len(samples) - len(targets),
        )


def read_posts(
    run: Run,
    location: str,
    encoder: AuthorEncoder,
    columns: dict | None = None,
    pseudonymise: bool = True,
) -> OwnPosts:
    """Read, clean and tokenise a file of posts, CSV, TSV, JSON lines or Parquet.

    Parameters
    ----------
    run : Run
        whose folder, ``outputs/<run>/``, takes what is made.
    location : str
        of the file.
    encoder : AuthorEncoder
        whose tokens are made.
    columns : dict, optional
        of the file for author, text, time, topic, see :mod:`helpers.accounts.columns`.
    pseudonymise : bool
        see :mod:`helpers.cleaning.pseudonyms`; names then never reach what this returns.

    Raises
    ------
    ValueError Where the file is at fault, its letters cannot be read, or fewer than two accounts
        have MIN_POSTS posts.
    """
    columns = column_types(location, columns or {})
    config = CollectConfig(
        source="table", location=[str(location)], columns=columns, pseudonymise=pseudonymise
    )
    (run.folder / "rankings.parquet").unlink(missing_ok=True)  # of other posts, perhaps
    card = collect(run, config)
    shutil.rmtree(run.folder / "collect", ignore_errors=True)  # its parts list the authors by name

    whole_store = _tokenise(run, encoder.tokenizer)
    count = whole_store.posts_per_author()
    enough = _accounts_with_posts(count, card)
    largest = enough[np.argsort(-count[enough], kind="stable")[:MAX_ACCOUNTS]]
    accounts = np.sort(largest)
    newest = in_memory(newest_posts(whole_store, accounts, STORED_POSTS)).store
    store, dropped_tokens = without_passages(newest, encoder.kinds)
    with_own_posts = _count_readable(store, encoder)

    card = card | {
        "accounts": with_own_posts,
        "accounts_of_shared_passages": len(accounts) - with_own_posts,
        "columns": columns,
        "accounts_with_few_posts": len(count) - len(enough),
        "accounts_beyond_the_largest": len(enough) - len(accounts),
        "share_in_shared_passages": dropped_tokens / max(len(newest.tokens), 1),
    }
    names = np.asarray(whole_store.author_names(), object)[accounts]
    hours = columns["time"] is not None
    return OwnPosts(store, names, hours, card, run.folder / "vectors.safetensors")


def _tokenise(run, tokenizer):
    posts = run.folder / "posts.parquet"
    return build_store(
        posts,
        run.tokens / "own",
        partial(_encode, tokenizer),
        list_topics(posts),
        f"{tokenizer.fingerprint}, {STORED_TOKENS} tokens",
        tokenizer.vocabulary,
    )


def _encode(tokenizer, texts):
    return [tokens[:STORED_TOKENS] for tokens in tokenizer.encode(texts)]


def _accounts_with_posts(count, card):
    accounts = np.flatnonzero(count >= MIN_POSTS)
    if len(accounts) < 2:
        raise ValueError(
            f"{len(accounts)} of {len(count)} accounts have {MIN_POSTS} posts or more after "
            f"cleaning: nothing can be compared. {card['rows_read']} rows were read, "
            f"{card['posts']} posts are left"
        )
    return accounts


def _count_readable(store, encoder):
    """Count accounts with MIN_POSTS posts; fewer than two, or unknown letters, are an error."""
    if len(store.tokens):
        unreadable = float((encoder.kinds[store.tokens] == 0).mean())
        if unreadable > UNREADABLE_SHARE:
            raise ValueError(
                f"{unreadable:.0%} of the tokens are letters that the encoder cannot read: it was "
                "made of English posts"
            )
    accounts = int((store.posts_per_author() >= MIN_POSTS).sum())
    if accounts < 2:
        raise ValueError(
            f"{accounts} of {store.authors} accounts keep {MIN_POSTS} posts of their own: the "
            "other posts hold passages that stand word for word in several posts"
        )
    return accounts


def choose_queries(posts: OwnPosts, accounts: list[str]) -> list[str]:
    """Choose the queries, as the posts name them.

    Parameters
    ----------
    posts : OwnPosts
        of all accounts.
    accounts : list[str]
        by name or pseudonym; without any, QUERIES with most posts are chosen, of more than
        FULL_GALLERY accounts FEWER_QUERIES.

    Raises
    ------
    ValueError
        Where an account is missing or has too few posts.
    """
    samples = newest_posts(posts.store)
    compared = posts.names[samples.authors]
    if not accounts:
        max_queries = QUERIES if len(compared) <= FULL_GALLERY else FEWER_QUERIES
        order = np.argsort(-posts.store.posts_per_author()[samples.authors], kind="stable")
        return list(compared[np.sort(order[:max_queries])])
    names = [name if name in posts.names else pseudonym_of(name) for name in accounts]
    missing = sorted(set(names) - set(compared))
    if missing:
        raise ValueError(
            f"{len(missing)} of the accounts asked about are not in the file, have fewer than "
            f"{MIN_POSTS} posts of their own words, or are not of the {MAX_ACCOUNTS:,} largest; "
            f"the first is {missing[0]}"
        )
    return names


def pseudonym_of(name: str) -> str:
    """Return the pseudonym that an account gets on this machine; a pseudonym stays as it is."""
    if PSEUDONYM.fullmatch(name):
        return name
    return pseudonymiser(pseudonym_key())(name)


def own_names(location: str, columns: dict | None = None) -> dict[str, str]:
    """Map pseudonyms to names of all authors of a file: only the machine that holds the key can.

    Parameters
    ----------
    location : str
        of the file.
    columns : dict, optional
        as in :func:`read_posts`.
    """
    column = column_types(location, columns or {})["author"]
    authors = read_columns(location, usecols=[column])[column].dropna().unique()
    pseudonym = pseudonymiser(pseudonym_key())
    return {pseudonym(str(author)): str(author) for author in authors}
