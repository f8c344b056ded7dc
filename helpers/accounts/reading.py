"""Own posts: a file with columns of any name becomes a gallery, cleaned as notebook 01 cleans every archive."""

import json
import re
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from helpers.accounts.columns import column_types, read_columns
from helpers.accounts.encoder import AuthorEncoder
from helpers.accounts.gallery import AccountGallery
from helpers.accounts.index import VectorIndex
from helpers.accounts.samples import (
    LEAST,
    MAX_TOKENS,
    NEWEST,
    in_memory,
    newest_posts,
    without_passages,
)
from helpers.cleaning import pseudonyms
from helpers.core.artifacts import atomic_write, fingerprint_of
from helpers.core.paths import Run
from helpers.corpus.collect import CollectConfig, collect
from helpers.sources import open_source
from helpers.tokens.batch import Samples
from helpers.tokens.store import TokenStore, build_store, list_topics
from helpers.training import checkpoints

MOST = 100_000  # accounts, those with most posts
PSEUDONYM = r"u[0-9a-f]{16}"
UNREAD = 0.2  # share of tokens for unknown letters, above which nothing is said
SHORT = 5000  # accounts, beyond which queries are compared with those that the index finds most like them
NEAR = (
    4000,
    1000,
)  # of these, for all queries together and for each: 40 held 0.7, 1000 0.96 of true partners in 5,000
COHORT = 1000  # accounts drawn at random beside them, to say how alike people are
HELD = 2 * NEWEST  # posts of an account that are kept in memory: two halves
KEPT = (
    2 * MAX_TOKENS
)  # tokens of a post that are kept: shared passages go before MAX_TOKENS are read


@dataclass(frozen=True)
class OwnPosts:
    """Accounts of a file: a store in memory of the newest posts, who they are, and what became of the rest.

    names : pseudonyms, by the store's author numbers. hours : are times known? card : what was read, dropped and left.
    kept : the file in which :meth:`vectors` are kept between runs.
    """

    store: TokenStore
    names: np.ndarray
    hours: bool
    card: dict
    kept: Path

    def samples(self, names: list[str]) -> Samples:
        """The newest posts of named accounts, to ask about."""
        return newest_posts(self.store, [list(self.names).index(name) for name in names])

    def gallery(self, encoder: AuthorEncoder, samples: Samples | None = None) -> AccountGallery:
        """All accounts with their newest posts, or with given samples of the store."""
        samples = newest_posts(self.store) if samples is None else samples
        return AccountGallery(encoder, samples, self.names[samples.authors], self.hours)

    def vectors(self, encoder: AuthorEncoder) -> np.ndarray:
        """Of all accounts (N, D) float16, kept for the next time that this encoder reads these posts."""
        made_of = fingerprint_of(
            self.card, encoder.fingerprint, encoder.uses[encoder.use(False, self.hours)].weights
        )
        with suppress(ValueError):  # none are kept, or they are damaged
            kept, about = checkpoints.read_checkpoint(self.kept)
            if about["fingerprint"] == made_of:
                return kept["vectors"].numpy()
        vectors = encoder.vectors(newest_posts(self.store), self.hours).astype(np.float16)
        checkpoints.save_checkpoint(
            self.kept, {"vectors": torch.from_numpy(vectors)}, {"fingerprint": made_of}
        )
        return vectors

    def around(self, encoder: AuthorEncoder, queries: Samples, seed: int = 0) -> AccountGallery:
        """The gallery to ask queries in: all accounts, of more than SHORT those that matter to these queries.

        They are the accounts whose vectors an index finds nearest to one of them, NEAR in number, and COHORT drawn at
        random from all accounts, whose scores s-norm uses: those of the nearest would hide every pair.
        """
        samples = newest_posts(self.store)
        if len(samples) <= SHORT:
            return self.gallery(encoder, samples)
        index, asked = VectorIndex(self.vectors(encoder)), encoder.vectors(queries, self.hours)
        _, near = index.search(asked, 1 + max(min(NEAR[0] // len(queries), NEAR[1]), 1))
        if queries.store is self.store:
            near = np.union1d(near, np.flatnonzero(np.isin(samples.authors, queries.authors)))
        cohort = np.random.default_rng(seed).permutation(len(samples))[:COHORT]
        chosen = np.union1d(near, cohort)
        kept = samples[chosen]
        drawn, beyond = np.isin(chosen, cohort), len(samples) - len(kept)
        return AccountGallery(
            encoder, kept, self.names[kept.authors], self.hours, None, drawn, beyond
        )


def read_posts(
    run: Run,
    location: str,
    encoder: AuthorEncoder,
    columns: dict | None = None,
    pseudonymise: bool = True,
    most: int | None = MOST,
) -> OwnPosts:
    """Read, clean and tokenise a CSV, TSV, JSON lines or Parquet file of posts into ``outputs/<run>/``.

    columns : of the file for author, text, time, topic, see :mod:`helpers.accounts.columns`. pseudonymise : see
    :mod:`helpers.cleaning.pseudonyms`; names then never reach what this returns. most : accounts that are kept, with
    most posts; None for all. Raises ValueError where the file is at fault, or fewer than two have LEAST posts.
    """
    columns = column_types(location, columns or {})
    config = CollectConfig(
        source="table", location=[str(location)], columns=columns, pseudonymise=pseudonymise
    )
    (run.folder / "rankings.parquet").unlink(missing_ok=True)  # of other posts, perhaps
    card = collect(run, config)
    shutil.rmtree(run.folder / "collect", ignore_errors=True)  # its parts list the authors by name
    words = encoder.tokenizer
    store = build_store(run.folder / "posts.parquet", run.tokens / "own",
                        lambda texts: [tokens[:KEPT] for tokens in words.encode(texts)],
                        list_topics(run.folder / "posts.parquet"), f"{words.fingerprint}, {KEPT} tokens",
                        words.vocabulary)  # fmt: skip
    count = store.posts_per_author()
    accounts = np.flatnonzero(count >= LEAST)
    if len(accounts) < 2:
        raise ValueError(
            f"{len(accounts)} of {len(count)} accounts have {LEAST} posts or more after cleaning: nothing "
            f"can be compared. {card['rows_read']} rows were read, {card['posts']} posts are left"
        )
    enough, accounts = (
        len(accounts),
        np.sort(accounts[np.argsort(-count[accounts], kind="stable")[:most]]),
    )
    names = np.asarray(store.author_names(), object)[accounts]
    held, dropped = without_passages(
        in_memory(newest_posts(store, accounts, HELD)).store, encoder.kinds
    )
    left = int((held.posts_per_author() >= LEAST).sum())
    unread = float((encoder.kinds[held.tokens] == 0).mean()) if len(held.tokens) else 0.0
    if unread > UNREAD:
        raise ValueError(f"{unread:.0%} of the tokens are letters that the encoder cannot read: it was made of English "
                         "posts")  # fmt: skip
    if left < 2:
        raise ValueError(f"{left} of {len(accounts)} accounts keep {LEAST} posts of their own: the other posts hold "
                         "passages that stand word for word in several posts")  # fmt: skip
    about = {"accounts": left, "accounts_of_shared_passages": len(accounts) - left, "columns": columns,
             "accounts_with_few_posts": len(count) - enough, "accounts_beyond_the_largest": enough - len(accounts),
             "share_in_shared_passages": dropped / max(len(held.tokens) + dropped, 1)}  # fmt: skip
    return OwnPosts(
        held, names, columns["time"] is not None, card | about, run.folder / "vectors.safetensors"
    )


def log_ranking(run: Run, found: pd.DataFrame) -> Path:
    """Write what ``rank`` found to ``rankings.parquet`` of a run, and to ``asked.jsonl`` who was asked about, when."""
    with atomic_write(run.folder / "rankings.parquet") as partial:
        found.to_parquet(partial, index=False)
    links = found[found.linked.astype(bool)][["query", "target", "probability"]].to_dict("records")
    line = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "asked": found["query"].unique().tolist(),
    }
    with open(run.folder / "asked.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line | {"linked": links}, ensure_ascii=False) + "\n")
    return run.folder / "rankings.parquet"


def choose_queries(posts: "OwnPosts", accounts: list[str], most: int | None = None) -> list[str]:
    """Choose the queries, as the posts name them: accounts by name or pseudonym, else the ``most`` with most posts.

    most : by default 500, of more than SHORT accounts 100. Raises ValueError where one has too few posts.
    """
    samples = newest_posts(posts.store)
    there = posts.names[samples.authors]
    if not accounts:
        order = np.argsort(-posts.store.posts_per_author()[samples.authors], kind="stable")
        return list(there[np.sort(order[: most or (500 if len(there) <= SHORT else 100)])])
    names = [name if name in posts.names else pseudonym_of(name) for name in accounts]
    if missing := sorted(set(names) - set(there)):
        raise ValueError(
            f"{len(missing)} of the accounts asked about are not in the file, have fewer than {LEAST} "
            f"posts of their own words, or are not of the {MOST:,} largest; the first is {missing[0]}"
        )
    return names


def pseudonym_of(name: str) -> str:
    """Return the name that :func:`read_posts` gives an account on this machine; a pseudonym stays as it is."""
    return (
        name
        if re.fullmatch(PSEUDONYM, name)
        else pseudonyms.pseudonymiser(pseudonyms.pseudonym_key())(name)
    )


def own_names(location: str, columns: dict | None = None) -> dict[str, str]:
    """Map pseudonyms to names of all authors of a file: only the machine that holds the key can."""
    name, column = (
        pseudonyms.pseudonymiser(pseudonyms.pseudonym_key()),
        column_types(location, columns or {})["author"],
    )
    return {
        name(author): author
        for author in map(str, read_columns(location, usecols=[column])[column].dropna().unique())
    }


def write_demo_csv(
    path: str | Path,
    evader: str = "demo-0013",
    accounts: int = 60,
    posts: int = 6000,
    seed: int = 5,
) -> None:
    """Write the demo corpus as a CSV with columns of its own, one account banned and come back as "newcomer"."""
    parts = open_source("demo", "", seed=seed, authors=accounts, posts=posts)
    frame = pd.concat([each for part in parts for each in part.read(Counter())], ignore_index=True)
    moments = frame.time[frame.author == evader]
    frame.loc[(frame.author == evader) & (frame.time > moments.median()), "author"] = "newcomer"
    frame["time"] = pd.to_datetime(frame.time, unit="s", utc=True)
    names = {"author": "nick", "time": "written", "topic": "room", "text": "message"}
    with atomic_write(path) as partial:
        frame.rename(columns=names).to_csv(partial, index=False)
