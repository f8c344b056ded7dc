"""params/khan2021 from dumps of Reddit to linking, at toy sizes and the paper's dates."""

import json
from bisect import bisect_right

from backports import zstd

from helpers.core import results
from helpers.evaluation.ranking import ranking_trials
from helpers.tokens.store import build_store, list_topics
from helpers.tokens.tokenizer import prepare_text
from tests.paper_runs import People, execute, lines, second

# 2015-07 to 2017-05
MONTHS = [f"{2015 + month // 12}-{month % 12 + 1:02d}" for month in range(6, 29)]
SUBREDDITS = ["AskReddit", "funny", "pics"]


def posts():
    """Comments, and what is to be dropped.

    24 authors train, 14 are of dev, 18 are asked about from November 2016 on.
    """
    people = People()
    made = []

    def write(author, home, count, first, last):
        start = second(first)
        end = second(last)
        for number in range(count):
            subreddit = home if number % 8 else people.rng.choice(SUBREDDITS)
            time = start + (end - start) * number // count + people.rng.randrange(3600)
            post = {
                "author": author,
                "subreddit": subreddit,
                "id": f"c{len(made):05d}",
                "score": 1,
                "created_utc": time,
                "body": people.text(author, 10, subreddit),
            }
            made.append(post)

    for number in range(30):
        write(f"early{number}", SUBREDDITS[number % 2], 26, "2015-07-02", "2016-06-29")
        write(f"early{number}", SUBREDDITS[number % 2], 24, "2016-11-01", "2016-11-30")
        write(f"early{number}", SUBREDDITS[number % 2], 24, "2016-12-02", "2017-05-30")
    # above the bound of training, and asked about later
    write("prolific", "pics", 60, "2015-07-02", "2016-06-29")
    for number in range(14):
        write(f"between{number}", SUBREDDITS[number % 2], 36, "2016-07-02", "2016-10-30")
    for author in ["prolific", *(f"late{number}" for number in range(18))]:
        home = SUBREDDITS[len(author) % 2]
        write(author, home, 24, "2016-11-01", "2016-11-30")
        write(author, home, 24, "2016-12-02", "2017-05-30")
    made.append({**made[0], "author": "[deleted]", "id": "x1"})
    made.append({**made[0], "author": "AutoModerator", "id": "x2"})
    return made


def write_dumps(folder):
    folder.mkdir()
    month_of = {name: [] for name in MONTHS}
    starts = [second(f"{name}-01") for name in MONTHS]
    for post in posts():
        month = bisect_right(starts, post["created_utc"]) - 1
        month_of[MONTHS[month]].append(post)
    for name, written in month_of.items():
        packed = zstd.compress(lines(written) + b'{"cut":\n')
        (folder / f"RC_{name}.zst").write_bytes(packed)


def write_iur(folder):
    """IUR's two files, 16 posts of each of 20 accounts in either; one repeats a post."""
    people = People()
    folder.mkdir()
    texts = {}
    for name in ("queries", "targets"):
        records = []
        for author in range(20):
            posts = [people.text(f"reader{author}", 8, "pics") for _ in range(16)]
            posts[3] = posts[2]
            texts[str(author), name] = posts
            times = {"day": [2] * 16, "hour": [author] * 16, "minute": list(range(16))}
            records.append(
                {"author_id": author, "syms": posts, "action_type": [author % 3] * 16} | times
            )
        (folder / f"{name}.jsonl").write_bytes(lines(records))
    return texts


def collect_iur(folder, monkeypatch):
    location = {
        "location": [str(folder / "iur")],
        "options": lambda options: {"in_order": options["in_order"]},  # words, and no model
    }
    return execute("khan2021_iur_test", {"01_collect": location}, folder / "outputs", monkeypatch)


def test_queries_and_targets_of_iur_are_those_of_its_files(tmp_path, monkeypatch):
    texts = write_iur(tmp_path / "iur")
    files = collect_iur(tmp_path, monkeypatch)
    posts = files.posts / "all.parquet"
    encode = prepare_text(tmp_path / "words", "bytes", 0, posts).encode
    store = build_store(posts, tmp_path / "tokens", encode, list_topics(posts), "bytes", 256)
    names = store.author_names()
    trials = ranking_trials(store, 16)
    assert len(trials.queries) == 20
    for samples, name in ((trials.queries, "queries"), (trials.targets, "targets")):
        for account, first, count in zip(samples.authors, samples.first, samples.count):
            ends = samples.store.post_offsets[first : first + count + 1]
            read = [
                bytes(samples.store.tokens[begin:end].astype("u1").tolist()).decode()
                for begin, end in zip(ends, ends[1:])
            ]
            assert read == texts[names[account], name]


def test_it_runs(tmp_path, monkeypatch):
    write_dumps(tmp_path / "reddit")
    net = {"filters": 8, "token_dim": 8, "attention": 8, "dim": 16}
    short = {
        "encoder": net,
        "training": {"steps": 3, "eval_every": 1},
        "sampler": {"authors_per_batch": 8, "samples_per_author": 4},
    }
    files = execute(
        "khan2021",
        {
            "01_collect": {
                "location": [str(tmp_path / "reddit")],
                "memory_limit": "1GB",
                "split_settings": {"min_posts": 20, "max_posts": 50, "eval_posts": 32},
            },
            "02_tokenizer": {"vocabulary": 300, "sentences": 3000},
            "03_train": short,
            "03_train.iur": short,
            "06_evaluate": {"models": ["TPS-arcface-iur", "TPS-topk"], "baselines": ["tfidf_word"]},
            "08_link": {
                "models": ["TPS-arcface-iur"],
                "baselines": ["tfidf_word"],
                "protocol": {
                    "enrolled": 4,
                    "min_enrolled": 2,
                    "topics": 2,
                    "accounts": None,
                    "query_posts": 16,
                },
                "dev_protocol": {"min_enrolled": 2, "min_query_posts": 4, "min_target_posts": 8},
                "target_sizes": [8],
            },
        },
        tmp_path / "outputs",
        monkeypatch,
    )
    split = json.loads((files.posts / "split.json").read_text())
    assert split["t1"].startswith("2016-07-01") and split["t2"].startswith("2016-11-01")
    assert split["settings"]["max_posts"] == 50 and split["splits"]["test"]["authors"] > 18
    card = json.loads(files.data_card.read_text())
    assert card["dropped_broken_json"] == len(MONTHS)
    assert card["dropped_deleted"] == card["dropped_bot"] == 1
    rows = results.read_results(files)
    assert {"MRR", "R@4", "R@8"} <= set(rows[rows.model == "stream_TPS-topk"].metric)
    linking = rows[(rows.protocol == "linking") & (rows.metric == "EER")]
    assert {"stream_TPS-arcface-iur", "fused_TPS-arcface-iur", "tfidf_word"} <= set(linking.model)
    assert split["splits"]["seen"]["authors"] == split["splits"]["train"]["authors"]  # of Table 9
