"""Cleaning of posts, beside cleaning that tries every expression at every character.

    python benchmarks/cleaning.py data/lean.parquet data/rust.parquet data/rlists.parquet
    python benchmarks/cleaning.py --sample 20000 data/lean.parquet
    python benchmarks/cleaning.py --pipermail data/lists --zulip data/zulip_json

A row is a step of the cleaning of a file's posts: how many there are, posts and MB a second of both
ways, and how many times as fast the new way is. Both ways clean each thousand of posts in turn, so
that a busy machine slows both alike; seconds are those of the processor. Where the two ways differ
in a post, it is an error.
"""

import argparse
import random
import time
from collections import Counter
from functools import partial
from pathlib import Path

import old_cleaning
import pandas as pd

from helpers import sources
from helpers.cleaning import email, email_headers, salutations
from helpers.cleaning import text as cleaning
from helpers.sources import pipermail

BLOCK_POSTS = 1000
WAYS = ("Every expression", "Marks first")


def clean_old(post):
    """Clean a post as notebook 01 did: its salutations, then everything else."""
    text, names = old_cleaning.mask_salutations(post[0])
    return old_cleaning.clean_post(text, post[1]), names


def clean_new(post):
    """Clean a post as notebook 01 does: its salutations, then everything else."""
    text, names = salutations.mask_salutations(post[0])
    return cleaning.clean_post(text, post[1]), names


def text_old(post):
    """Clean a post without a look at its salutations, as before."""
    return old_cleaning.clean_post(*post)


def text_new(post):
    """Clean a post without a look at its salutations."""
    return cleaning.clean_post(*post)


def paragraphs_old(post):
    """Return what the author of a mail wrote, as before."""
    return old_cleaning.own_paragraphs(post[0])


def paragraphs_new(post):
    """Return what the author of a mail wrote."""
    return email.own_paragraphs(post[0])


# name of a step: what does it for a post, in the old and in the new way
STEPS = {
    "clean_post": (text_old, text_new),
    "salutations, clean_post": (clean_old, clean_new),
}
MAIL_STEP = {"own_paragraphs": (paragraphs_old, paragraphs_new)}


def compare(name, step, posts, ways):
    """Print the row of a step of the posts of a file, and check that both ways do the same."""
    seconds = [0.0, 0.0]
    for begin in range(0, len(posts), BLOCK_POSTS):
        block = posts[begin : begin + BLOCK_POSTS]
        results = []
        for number, way in enumerate(ways):
            began = time.process_time()
            results.append([way(post) for post in block])
            seconds[number] += time.process_time() - began
        for post, old, new in zip(block, *results, strict=True):
            if old != new:
                raise ValueError(f"{name}, {step}: {post!r} became {new!r} and not {old!r}")
    megabytes = sum(len(text.encode(errors="replace")) for text, _ in posts) / 1e6
    rates = [f"{len(posts) / took:9,.0f} {megabytes / took:6.1f}" for took in seconds]
    ratio = seconds[0] / seconds[1]
    print(f"{name:12} {step:24} {len(posts):9,} {rates[0]} {rates[1]} {ratio:6.2f}", flush=True)


def table_posts(path):
    """The texts and authors of a posts table."""
    table = pd.read_parquet(path, columns=["text", "author"])
    return list(zip(table.text, table.author, strict=True))


def mail_bodies(folder):
    """The bodies and senders of the mails of a folder of monthly archives."""
    posts = []
    for path in sorted(Path(folder).rglob("*.txt")):
        for message in pipermail._messages(path, Counter()):
            mail = email_headers.parse_headers(email_headers.decode_header(message, Counter()))
            posts.append((mail.body, mail.author))
    return posts


def chat_posts(folder):
    """The texts and authors of a Zulip archive."""
    posts = []
    for part in sources.open_source("zulip", str(Path(folder).resolve())):
        for frame in part.read(Counter()):
            posts += zip(frame.text, frame.author, strict=True)
    return posts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", type=Path, nargs="*", help="posts tables")
    parser.add_argument("--pipermail", type=Path, help="folder of monthly archives of mails")
    parser.add_argument("--zulip", type=Path, help="folder of a Zulip archive")
    parser.add_argument("--sample", type=int, help="posts of each file, drawn at random")
    arguments = parser.parse_args()

    print(f"{'':37} {'posts':>9} " + " ".join(f"{way:>16}" for way in WAYS) + "  ratio")
    print(f"{'':47} " + " ".join([f"{'posts/s':>9} {'MB/s':>6}"] * 2))
    files = {path.stem: partial(table_posts, path) for path in arguments.tables}
    if arguments.pipermail:
        files["pipermail"] = partial(mail_bodies, arguments.pipermail)
    if arguments.zulip:
        files["zulip"] = partial(chat_posts, arguments.zulip)
    for name, read in files.items():
        posts = read()
        if arguments.sample and arguments.sample < len(posts):
            posts = random.Random(0).sample(posts, arguments.sample)
        if name == "pipermail":
            for step, ways in MAIL_STEP.items():
                compare(name, step, posts, ways)
            posts = [(email.own_paragraphs(body), author) for body, author in posts]
        for step, ways in STEPS.items():
            compare(name, step, posts, ways)


if __name__ == "__main__":
    main()
