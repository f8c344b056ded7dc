"""Documents against plain Python: what is joined, cut and dropped, and that the counts add up."""

import random

import pytest

from helpers.corpus.posts_table import join_posts
from tests.factories import read_posts


def join_slowly(rows, max_chars, min_chars):
    """One post at a time; (documents, posts and characters used)."""
    runs = {}
    for author, time, topic, text in sorted(rows, key=lambda row: (row[0], row[1], row[3], row[2])):
        runs.setdefault((author, topic), []).append((author, time, topic, text))
    found, posts, characters = [], 0, 0
    for run in runs.values():
        start, pages = 0, {}
        for row in run:
            pages.setdefault(start // max_chars, []).append(row)
            start += len(row[3]) + 1
        for page in pages.values():
            whole = "\n".join(row[3] for row in page)
            part = whole[:max_chars]
            if len(part) >= min_chars:
                found.append((*page[0][:3], part))
                posts += len(page)
                characters += len(part) - (len(page) - 1)
    return sorted(found, key=lambda row: (row[0], row[1], row[3], row[2])), posts, characters


def made(seed):
    rng = random.Random(seed)
    letters = "ab \n'\"é🤦🏼\u0301"
    rows = []
    for number in range(200):
        text = f"{number}" + "".join(rng.choices(letters, k=rng.choice([0, 5, 20, 70, 300])))
        rows.append((f"o'{rng.randrange(6)}", rng.randrange(50), rng.choice("xy"), text))
    return sorted(rows)


@pytest.mark.parametrize("seed, max_chars, min_chars", [(0, 100, 30), (1, 57, 57), (2, 1000, 1)])
def test_it_joins(tmp_path, write_posts, seed, max_chars, min_chars):
    rows = made(seed)
    limits = {"max_chars": max_chars, "min_chars": min_chars}
    report = join_posts(write_posts(rows), tmp_path / "out.parquet", **limits)
    found, posts, characters = join_slowly(rows, max_chars, min_chars)
    assert read_posts(tmp_path / "out.parquet") == found and found
    assert report["documents"] == len(found) and report["authors"] == len({row[0] for row in found})
    assert report["posts_used"] == posts and posts + report["posts_in_short_documents"] == len(rows)
    assert report["characters_used"] == characters
    lost = report["characters_in_short_documents"] + report["characters_cut"]
    assert characters + lost == sum(len(row[3]) for row in rows)
