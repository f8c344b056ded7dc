"""Generated Reddit dumps, with half of the fields of a comment."""

import json
import random
from pathlib import Path

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
        "body": body,
        "subreddit_id": "t5_2qh1i",
        "link_id": f"t3_{number:x}",
        "subreddit": rng.choice(["AskReddit", "pics", "funny", "nba"]),
        "score": rng.randrange(-5, 400),
        "created_utc": 1_435_708_800 + number // 30,
        "author": author,
        "id": f"c{number:x}",
        "parent_id": f"t1_{number:x}",
        "retrieved_on": 1_437_000_000,
    }
    return json.dumps(record, separators=(",", ":")) + "\n"


def write(path: Path, count: int):
    """A dump of so many comments."""
    rng = random.Random(0)
    path.write_text("".join([comment(number, rng) for number in range(count)]))
