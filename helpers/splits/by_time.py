"""Splits by author and time, decided once and written down, and the audit that checks them.

No author is in two splits and each split lies in its own period: train < t1 <= dev < t2 <= test (K13). Whoever is
trained on is never asked about later, and what is asked about happened after the training ended. Archives that end in
different years have no period in common: with ``periods="community"`` t1 and t2 are those of each community, what
precedes the first "/" of a topic, and the rule holds within each, not between them.
"""

import re
from datetime import UTC, datetime
from pathlib import Path

from helpers.runs.artifacts import file_fingerprint, fingerprint_of, read_json, write_json
from helpers.splits.audit import SHARED_AUTHORS, SHARED_TEXTS, AuditError, current, out_of_order, too_few, verdict
from helpers.corpus.table import database, text, write

SPLITS = ("train", "dev", "test")
PERIODS = ("common", "community")
DEV_SHARE = 0.35  # of the authors who could be in dev and in test


def future(posts_path, out_folder, *, train_until=0.7, dev_until=0.8, heldout=0.3, min_posts=16, eval_posts=32,
           periods="common", seed=0, memory_limit="2GB") -> dict:
    """Write ``train.parquet``, ``dev.parquet``, ``test.parquet`` and ``split.json`` to a folder; return the latter.

    train_until, dev_until: t1 and t2, as ISO dates (UTC) or as fractions of all posts in time order.
    heldout: share of the authors, by a hash of seed and name, kept out of training even if active before t1.
    min_posts: a training author has so many posts before t1; the author's later posts are not used.
    eval_posts: every other author with so many posts from t2 on is a test author, or with so many in [t1, t2) a dev
    author; of those who could be both a DEV_SHARE goes to dev, by another part of the hash. Only the posts of
    that period are used.
    periods: "common", or "community" for a calendar of each community's own.

    ``split.json`` holds the parameters, t1, t2, posts and authors of each split, and the posts that are unused by
    reason; used and unused add up to all posts. Raises ValueError on a date or fraction out of order, or where a
    split is empty; :class:`~helpers.splits.audit.AuditError` where the result breaks a rule.
    """
    folder = Path(out_folder)
    settings = {"split": "future", "train_until": train_until, "dev_until": dev_until, "heldout": heldout,
                "min_posts": min_posts, "eval_posts": eval_posts, "periods": periods, "seed": seed}
    if periods not in PERIODS:
        raise ValueError(f"periods {periods!r}: one of {', '.join(PERIODS)}")
    if not 0 <= heldout < 1:
        raise ValueError(f"heldout must lie in [0, 1), not {heldout!r}")
    fingerprint = fingerprint_of(settings, DEV_SHARE, file_fingerprint(posts_path))
    if current(folder, fingerprint, SPLITS):
        return read_json(folder / "split.json")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "split.json").unlink(missing_ok=True)  # while it is missing the files beside it count for nothing
    with database(folder / "work", memory_limit) as connection:
        connection.execute(f"""CREATE VIEW dated AS
            SELECT *, epoch(time)::BIGINT AS second, {_community(periods)} AS community FROM {text(posts_path)}""")
        t1, t2 = (_instants(connection, name, settings[name]) for name in ("train_until", "dev_until"))
        if wrong := [name for name in t1 if not t1[name] < t2[name]]:
            raise ValueError(f"train_until ({train_until}) must be earlier than dev_until ({dev_until})"
                             + (f" in {', '.join(wrong)}" if periods == "community" else ""))
        connection.execute("CREATE TABLE calendar (community VARCHAR, t1 BIGINT, t2 BIGINT)")
        connection.executemany("INSERT INTO calendar VALUES (?, ?, ?)", [[name, t1[name], t2[name]] for name in t1])
        connection.execute("""CREATE VIEW posts AS SELECT dated.*,
            CASE WHEN second < t1 THEN 'train' WHEN second < t2 THEN 'dev' ELSE 'test' END AS period
            FROM dated JOIN calendar USING (community)""")
        # 52 bits of a hash make a number in [0, 1) that is the same on every machine
        share = "('0x' || substr({}, {}, 13))::BIGINT / pow(2, 52)"
        connection.execute(f"""
            CREATE TABLE authors AS
            WITH counted AS (
                SELECT author, sha256({text(seed)} || ':' || author) AS hash,
                       count(*) FILTER (period = 'train') AS before, count(*) FILTER (period = 'dev') AS between,
                       count(*) FILTER (period = 'test') AS after
                FROM posts GROUP BY author),
            drawn AS (SELECT *, {share.format("hash", 1)} < {float(heldout)} AS heldout,
                             {share.format("hash", 14)} < {DEV_SHARE} AS to_dev FROM counted)
            SELECT *, CASE WHEN NOT heldout AND before >= {int(min_posts)} THEN 'train'
                           WHEN between >= {int(eval_posts)} AND (to_dev OR after < {int(eval_posts)}) THEN 'dev'
                           WHEN after >= {int(eval_posts)} THEN 'test' END AS split FROM drawn""")
        # one period each, so a post is used or has exactly one reason not to be
        connection.execute("""
            CREATE VIEW placed AS SELECT p.*, split, CASE
                WHEN split = period THEN ''
                WHEN split = 'train' THEN 'later_posts_of_training_authors'
                WHEN split IS NOT NULL THEN 'other_periods_of_' || split || '_authors'
                WHEN heldout THEN 'heldout_authors_with_too_few_posts'
                ELSE 'authors_with_too_few_posts' END AS reason
            FROM posts p JOIN authors USING (author)""")
        report = {**settings, "t1": _dates(t1), "t2": _dates(t2)}
        rows = connection.execute("""
            SELECT split, count(*), count(DISTINCT author) FROM placed WHERE reason = '' GROUP BY split""").fetchall()
        for name in SPLITS:
            sizes = next((row[1:] for row in rows if row[0] == name), (0, 0))
            report[f"{name}_posts"], report[f"{name}_authors"] = sizes
        reasons = connection.execute(
            "SELECT reason, count(*) FROM placed WHERE reason <> '' GROUP BY reason ORDER BY reason").fetchall()
        report |= {f"unused_{reason}": count for reason, count in reasons}
        if empty := [name for name in SPLITS if not report[f"{name}_posts"]]:
            raise ValueError(
                f"no author for {', '.join(empty)}: {report}; lower min_posts or eval_posts, or move the dates")
        names = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {text(posts_path)}").fetchall()]
        for name in SPLITS:
            query = f"SELECT {', '.join(names)} FROM placed WHERE reason = '' AND split = '{name}'"
            write(connection, query, folder / f"{name}.parquet")
    audit(folder, report)
    write_json(folder / "split.json", report | {"fingerprint": fingerprint})
    return read_json(folder / "split.json")


def none(posts_path, out_folder, memory_limit="2GB") -> dict:
    """Write all posts as ``all.parquet``, and ``split.json``; return the latter. For corpora only looked at."""
    folder = Path(out_folder)
    fingerprint = fingerprint_of("none", file_fingerprint(posts_path))
    if not current(folder, fingerprint, ["all"]):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "split.json").unlink(missing_ok=True)
        with database(folder / "work", memory_limit) as connection:
            posts = write(connection, f"FROM {text(posts_path)}", folder / "all.parquet")
            authors = _value(connection, f"SELECT count(DISTINCT author) FROM {text(posts_path)}")
        report = {"split": "none", "all_posts": posts, "all_authors": authors, "fingerprint": fingerprint}
        write_json(folder / "split.json", report)
    return read_json(folder / "split.json")


def audit(folder, report=None, memory_limit="2GB") -> list[dict]:
    """Check the files of a :func:`future` split, whatever wrote them; return one row per check.

    report: the parameters, ``split.json`` of the folder where not given. Rows: ``check``, ``value`` (the number of
    violations) and ``detail``. Raises AuditError naming the checks whose value is not 0, ValueError where a file is
    missing.
    """
    folder = Path(folder)
    report = report or read_json(folder / "split.json")
    files = {name: folder / f"{name}.parquet" for name in SPLITS}
    if missing := [path.name for path in files.values() if not path.exists()]:
        raise ValueError(f"no {', '.join(missing)} in {folder.name}: run the notebook that makes the split")
    rows = []
    with database(folder / "audit", memory_limit) as connection:
        community = _community(report.get("periods", "common"))
        union = " UNION ALL ".join(f"""
            SELECT '{name}' AS split, *, {community} AS community, epoch(time)::BIGINT AS second FROM {text(path)}"""
                                   for name, path in files.items())
        connection.execute(f"CREATE VIEW posts AS {union}")

        def check(name, query, detail=""):
            rows.append({"check": name, "value": _value(connection, query), "detail": detail})

        check("authors in more than one split", SHARED_AUTHORS)
        found = connection.execute("SELECT split, min(second), max(second) FROM posts GROUP BY split").fetchall()
        times = {name: (low, high) for name, low, high in found}
        if empty := [name for name in SPLITS if name not in times]:
            raise AuditError(f"no posts in {', '.join(empty)}")
        for early, late in (("train", "dev"), ("train", "test"), ("dev", "test")):
            check(f"{late} posts not later than every {early} post", f"""
                WITH ends AS (SELECT community, max(second) AS last FROM posts WHERE split = '{early}' GROUP BY ALL)
                SELECT count(*) FROM posts JOIN ends USING (community) WHERE split = '{late}' AND second <= last""",
                  f"{early} ends {_iso(times[early][1])}, {late} begins {_iso(times[late][0])}"
                  if community == "''" else "within each community")
        check("texts in more than one split", SHARED_TEXTS, "lower case, white space collapsed")
        for name in SPLITS:
            least = int(report["min_posts" if name == "train" else "eval_posts"])
            check(f"{name} authors with fewer than {least} posts", too_few(files[name], least))
            check(f"{name} rows out of order (author, then time)", out_of_order(files[name]))
        for name in SPLITS:
            counts = tuple(connection.execute(
                "SELECT count(*), count(DISTINCT author) FROM posts WHERE split = ?", [name]).fetchall()[0])
            told = (report[f"{name}_posts"], report[f"{name}_authors"])
            rows.append({"check": f"{name} counts differ from split.json", "value": int(counts != told),
                         "detail": f"{counts[0]} posts, {counts[1]} authors"})
    return verdict(rows)


def _community(periods):
    return "split_part(topic, '/', 1)" if periods == "community" else "''"


def _instants(connection, name, value):
    """Per community: seconds since 1970 of an ISO date, or of the post that ends a fraction of all its posts."""
    if isinstance(value, str) and not re.fullmatch(r"0?\.\d+", value):
        try:
            instant = f"epoch({text(value)}::TIMESTAMPTZ)::BIGINT"
            _value(connection, f"SELECT {instant}")
        except Exception as error:
            raise ValueError(f"{name} must be an ISO date or a fraction of the posts, not {value!r}: {error}") from None
    elif 0 < float(value) < 1:
        instant = f"quantile_disc(second, {float(value)})"
    else:
        raise ValueError(f"{name} must lie between 0 and 1, or be an ISO date, not {value!r}")
    query = f"SELECT community, {instant} FROM dated GROUP BY community ORDER BY community"
    return dict(connection.execute(query).fetchall())


def _dates(instants):
    """One date where there is one calendar, else a date per community."""
    dates = {name: _iso(instant) for name, instant in instants.items()}
    return dates.get("", dates)


def _iso(second):
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _value(connection, query):
    return connection.execute(query).fetchall()[0][0]
