"""The demo corpus: reproducible, its text obeys its truth table, as hard as it should be."""

import hashlib
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from helpers.sources import COLUMNS, demo
from helpers.sources.demo_writer import TOPICS

SMALL = {"authors": 12, "posts": 600}
DIGEST = "0d8a2f87e5af8c0c2ca42f245aea0b84caf463e4a04a8a3294ff07b192fd3d15"  # of its posts


def corpus(**options):
    posts = [post for part in demo.parts(**options) for post in part.read(Counter())]
    return pd.DataFrame(posts)[COLUMNS]


def digest(posts):
    return hashlib.sha256(posts.to_csv(index=False).encode()).hexdigest()


@pytest.fixture(scope="module")
def posts():
    return corpus(authors=400, posts=27_000)


@pytest.fixture(scope="module")
def truth():
    return demo.style_truth(authors=400).set_index("author")


def test_same_bytes_whatever_the_hash_seed():
    code = (
        "import pandas as pd, hashlib; from collections import Counter;"
        "from helpers.sources import demo;"
        "parts = demo.parts(authors=12, posts=600);"
        "posts = pd.DataFrame([post[:4] for p in parts for post in p.read(Counter())],"
        "  columns=['author', 'time', 'topic', 'text']);"
        "print(hashlib.sha256(posts.to_csv(index=False).encode()).hexdigest())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest(corpus(**SMALL)) == DIGEST
    assert digest(corpus(**SMALL, seed=1)) != DIGEST


def test_texts_are_clean_and_never_twice(posts):
    assert posts.text.str.len().min() >= 10
    assert not posts.text.duplicated().any()
    assert posts.text.str.contains("<script>alert(1)</script>", regex=False).sum() == 2
    assert posts.text.str.contains("<", regex=False).sum() == 2
    assert 0.01 < posts.text.str.contains("https?://|`").mean() < 0.03
    assert not posts.text.str.contains(r"\b[A-Z]+_[A-Z]+\b").any(), "a slot that was not filled"


def test_topics_follow_the_stated_mixture_and_its_drift(posts, truth):
    at = (posts.time - demo.START) / (demo.DAYS * 86_400)

    def slope(measured, stated):
        """1 where measured shares follow the stated ones."""
        return np.polyfit(stated.to_numpy().ravel(), measured.to_numpy().ravel(), 1)[0]

    shares_of_author = pd.crosstab(posts.author, posts.topic, normalize="index")
    measured = shares_of_author.reindex(columns=list(TOPICS))
    start, end = (truth[[f"topic_{side}_{name}" for name in TOPICS]] for side in ("start", "end"))
    start.columns = end.columns = list(TOPICS)
    # until the middle of an author's stay
    drift = (end - start).mul(at.groupby(posts.author).mean(), axis=0)
    assert 0.95 < slope(measured, start + drift) < 1.05
    assert 0.9 < slope(measured - start, drift) < 1.1
    assert np.allclose(start.sum(axis=1), 1) and np.allclose(end.sum(axis=1), 1)
