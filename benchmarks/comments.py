"""Generated Reddit dumps with the fields of 2015."""

import json
import random
from functools import cache
from pathlib import Path

DIFFERENT_COMMENTS = 50_000
WORDS = (
    "the of and to in is that it for you was with on as have but be they I this not are or from "
    "at one had"
).split()


def comment(number: int, rng: random.Random) -> str:
    """A line of 30 words on average, at times quoted, escaped or code.

    One author in 20 is deleted, one in 60 a bot.
    """
    words = rng.choices(WORDS, k=max(1, int(rng.lognormvariate(2.9, 1))))
    chance = rng.random()
    body = " ".join(words)
    if chance < 0.1:
        body = f"&gt; {' '.join(words[:12])}\n\n{body}"
    elif chance < 0.25:
        body = f'{body}.\n\n{body[:80]} &amp; so "on" \u00e9'
    elif chance < 0.26:
        body += "\n\n    x = 1\n\nso"
    author = rng.choice(
        ["[deleted]"] * 3 + ["AutoModerator"] + [f"User_{rng.randrange(3_000_000)}"] * 56
    )
    record = {
        "controversiality": 0,
        "body": body,
        "subreddit_id": "t5_2qh1i",
        "link_id": f"t3_{number:x}",
        "stickied": False,
        "subreddit": rng.choice(["AskReddit", "pics", "funny", "nba"]),
        "score": rng.randrange(-5, 400),
        "ups": 2,
        "author_flair_css_class": None,
        "created_utc": 1_435_708_800 + number // 30,
        "author_flair_text": None,
        "author": author,
        "id": f"c{number:x}",
        "edited": False,
        "parent_id": f"t1_{number:x}",
        "gilded": 0,
        "distinguished": None,
        "retrieved_on": 1_437_000_000,
        "archived": False,
        "downs": 0,
        "score_hidden": False,
    }
    return json.dumps(record, separators=(",", ":")) + "\n"


@cache
def comments() -> list[bytes]:
    """The lines of which a dump is made."""
    rng = random.Random(0)
    return [comment(number, rng).encode() for number in range(DIFFERENT_COMMENTS)]


def write(path: Path, size: int):
    """About ``size`` bytes of comments, many of them different."""
    rng = random.Random(0)
    lines = comments().copy()
    with open(path, "wb") as file:
        while size > 0:
            rng.shuffle(lines)
            block = b"".join(lines)
            if len(block) > size:
                block = block[: block.rfind(b"\n", 0, size + 1000) + 1]
            file.write(block)
            size -= len(block)
