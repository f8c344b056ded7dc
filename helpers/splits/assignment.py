"""Splits that are decided by who wrote and on what: every post placed or given a reason, the files, and their audit."""

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from helpers.runs.artifacts import file_fingerprint, fingerprint_of, read_json, write_json
from helpers.splits.audit import SHARED_AUTHORS, SHARED_TEXTS, AuditError, current, out_of_order, too_few, verdict
from helpers.cleaning.near_duplicates import NORMAL
from helpers.corpus.table import SCHEMA, database, text, write

VERSION = 2  # raised when the same posts and settings give other files
# of a text in several splits the first of them keeps it
SPLITS = {"by_authors": ("train", "test", "dev"), "by_topics": ("train", "test_cross", "test_in", "dev")}
PAIR = "'^(.+)/[ab]$'"  # the id of a text dissolved from a pair


def place(posts_path, out_folder, settings: dict, decide, memory_limit="2GB") -> dict:
    """Write one Parquet file per split, and ``split.json``; return the latter. What is current is reused.

    settings: ``split``, a key of SPLITS, and what else the result depends on; ``min_documents``: authors with fewer
    posts left in their split are dropped from it; ``author_topics``: of how many topics, their most frequent ones,
    training authors keep posts, 0 for all. decide: called with a connection that has the view ``posts``, returns
    the frames (author, split or None) and (topic, seen, unseen), and a function that is called when the files are
    written and returns more for the report. Posts of train and test_in must be of seen topics, those of test_cross of
    unseen ones; a topic may be both.
    Raises ValueError where a split is empty, :class:`~helpers.splits.audit.AuditError` where the result breaks a rule.
    """
    folder, names = Path(out_folder), SPLITS[settings["split"]]
    fingerprint = fingerprint_of(VERSION, settings, file_fingerprint(posts_path))
    if current(folder, fingerprint, names):
        return read_json(folder / "split.json")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "split.json").unlink(missing_ok=True)  # while it is missing the files beside it count for nothing
    there = pq.read_schema(posts_path).names
    columns = ", ".join(name for name in SCHEMA.names if name in there)
    with database(folder / "work", memory_limit) as connection:
        connection.execute(f"""
            CREATE VIEW posts AS SELECT {columns}, file_row_number AS n
            FROM read_parquet({text(posts_path)}, file_row_number = true)""")
        authors, topics, told = decide(connection)
        connection.register("chosen_authors", authors)
        connection.register("chosen_topics", topics)
        _give_reasons(connection, names, settings.get("min_documents", 1), settings.get("author_topics", 0))
        report = dict(settings)
        for name in names:
            used = f"SELECT {columns} FROM posts JOIN placed USING (n) WHERE split = '{name}' AND reason = ''"
            report |= _sizes(connection, name, f"({used})")
            if not report[f"{name}_posts"]:
                raise ValueError(f"nothing is left for {name}: {report}; other shares or a smaller minimum may help")
            write(connection, used, folder / f"{name}.parquet")
        reasons = connection.execute("""
            SELECT reason, count(*) FROM placed WHERE reason <> '' GROUP BY reason ORDER BY reason""").fetchall()
        report |= {f"unused_{reason}": count for reason, count in reasons} | told()
    audit(folder, report, memory_limit)
    write_json(folder / "split.json", report | {"fingerprint": fingerprint})
    return read_json(folder / "split.json")


def _give_reasons(connection, names, least, most):
    """Make the table placed(n, split, reason): '' for a post that is used, else the one reason why it is not.

    In this order: author, topic, text, number. Training loses nothing after the topics, so what was seen stays seen.
    """
    connection.execute(f"""
        CREATE TABLE given AS
        SELECT n, author, split, topic, md5_number({NORMAL}) AS hash, list_position({list(names)}, split) AS rank,
               CASE WHEN split IS NULL THEN 'authors_not_drawn'
                    WHEN split = 'test_cross' AND NOT unseen OR split IN ('train', 'test_in') AND NOT seen
                    THEN 'other_topics_of_' || split || '_authors' ELSE '' END AS reason
        FROM posts JOIN chosen_authors USING (author) JOIN chosen_topics USING (topic)""")
    if most:
        connection.execute(f"""
            UPDATE given SET reason = 'rarer_topics_of_train_authors' WHERE split = 'train' AND reason = ''
            AND (author, topic) NOT IN (
                SELECT (author, topic) FROM given WHERE split = 'train' AND reason = '' GROUP BY author, topic
                QUALIFY row_number() OVER (PARTITION BY author ORDER BY count(*) DESC, topic) <= {int(most)})""")
        connection.execute(f"""
            UPDATE given SET reason = 'authors_with_too_few_documents' WHERE split = 'train' AND reason = ''
            AND author IN (SELECT author FROM given WHERE split = 'train' AND reason = '' GROUP BY author
                           HAVING count(*) < {int(least)})""")
    connection.execute("""
        UPDATE given SET reason = 'other_topics_of_test_in_authors' WHERE split = 'test_in' AND reason = ''
        AND topic NOT IN (SELECT topic FROM given WHERE split = 'train' AND reason = '')""")
    connection.execute(f"""
        CREATE TABLE placed AS
        WITH firsts AS (SELECT hash, min(rank) AS first FROM given WHERE reason = '' GROUP BY hash),
        single AS (SELECT n, author, split, CASE WHEN reason = '' AND rank > first THEN 'texts_of_other_splits'
                          ELSE reason END AS reason FROM given LEFT JOIN firsts USING (hash)),
        counts AS (SELECT author, count(*) AS kept FROM single WHERE reason = '' GROUP BY author)
        SELECT n, split, CASE WHEN reason = '' AND kept < {int(least)} THEN 'authors_with_too_few_documents'
                         ELSE reason END AS reason
        FROM single LEFT JOIN counts USING (author)""")


def _sizes(connection, name, source):
    values = connection.execute(
        f"SELECT count(*), count(DISTINCT author), count(DISTINCT topic) FROM {source}").fetchall()[0]
    return {f"{name}_{what}": value for what, value in zip(("posts", "authors", "topics"), values, strict=True)}


def audit(folder, report=None, memory_limit="2GB") -> list[dict]:
    """Check the files of a split by authors or by topics, whatever wrote them; return one row per check.

    report: the parameters, ``split.json`` of the folder where not given. Rows: ``check``, ``value`` (the number of
    violations) and ``detail``. Raises AuditError naming the checks whose value is not 0, ValueError where a file is
    missing or the folder holds another kind of split.
    """
    folder = Path(folder)
    report = report or read_json(folder / "split.json")
    if report.get("split") not in SPLITS:
        raise ValueError(f"{folder.name} holds the split {report.get('split')!r}, not one of {', '.join(SPLITS)}")
    files = {name: folder / f"{name}.parquet" for name in SPLITS[report["split"]]}
    clustered = folder / "clusters.json" if report.get("kind") == "leak_aware" else None
    if missing := [path.name for path in (*files.values(), clustered) if path and not path.exists()]:
        raise ValueError(f"no {', '.join(missing)} in {folder.name}: run the notebook that makes the split")
    rows = []
    with database(folder / "audit", memory_limit) as connection:
        connection.execute("CREATE VIEW posts AS " + " UNION ALL ".join(
            f"SELECT '{name}' AS split, * FROM {text(path)}" for name, path in files.items()))

        def check(name, query, detail=""):
            rows.append({"check": name, "value": connection.execute(query).fetchall()[0][0], "detail": detail})

        there = {name for (name,) in connection.execute("SELECT DISTINCT split FROM posts").fetchall()}
        if empty := [name for name in files if name not in there]:
            raise AuditError(f"no posts in {', '.join(empty)}")
        check("authors in more than one split", SHARED_AUTHORS)
        check("texts in more than one split", SHARED_TEXTS, "lower case, white space collapsed")
        if report["split"] == "by_topics":
            _check_topics(connection, check, report, clustered)
        elif report["given_pairs"]:
            check("authors of one pair in more than one split", f"""
                SELECT count(*) FROM (SELECT regexp_extract(id, {PAIR}, 1) AS pair FROM posts GROUP BY pair
                                      HAVING count(DISTINCT split) > 1)""")
        for name, path in files.items():
            least = report.get("min_documents", 1)
            check(f"{name} authors with fewer than {least} documents", too_few(path, least))
            check(f"{name} rows out of order (author, then time)", out_of_order(path))
        for name, path in files.items():
            sizes = _sizes(connection, name, text(path))
            rows.append({"check": f"{name} counts differ from split.json",
                         "value": int(any(report[key] != value for key, value in sizes.items())),
                         "detail": ", ".join(f"{value} {key.rsplit('_', 1)[1]}" for key, value in sizes.items())})
    return verdict(rows)


def _check_topics(connection, check, report, clustered):
    topics = "(SELECT DISTINCT topic FROM posts WHERE split = '{}')"
    train, test = topics.format("train"), topics.format("test_cross")
    check("test_in topics that train lacks", f"""
        SELECT count(*) FROM (FROM {topics.format("test_in")} EXCEPT FROM {train})""")
    if report["kind"] != "random":
        check("topics of both train and test_cross", f"SELECT count(*) FROM (FROM {train} INTERSECT FROM {test})")
    if most := report.get("author_topics"):
        check(f"train authors with more than {most} topics", f"""
            SELECT count(*) FROM (SELECT author FROM posts WHERE split = 'train' GROUP BY author
                                  HAVING count(DISTINCT topic) > {most})""")
    if clustered:
        connection.register("clusters", pd.DataFrame(read_json(clustered).items(), columns=["topic", "cluster"]))
        sides = [f"SELECT cluster FROM {side} LEFT JOIN clusters USING (topic)" for side in (train, test)]
        check("clusters of both train and test_cross", f"SELECT count(*) FROM ({sides[0]} INTERSECT {sides[1]})")
