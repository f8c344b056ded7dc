"""What a run has made, in a form that is equal for two runs that found the same.

Seconds differ from run to run, and so do the checksums of files that hold seconds. All other bytes
must be equal: posts, splits, tokenizer, token stores, weights; results and learning curves without
their seconds; the report's words and figures with the numbers masked that are times.
"""

import hashlib
import json
import os
import re

import pandas as pd
from bs4 import BeautifulSoup

# of a run's folder: work files that no later step reads, locks, and the log of questions
LEFT_OUT = re.compile(r"^(?:collect|notebooks)/|(?:^|/)\.[^/]*$|^asked\.jsonl$")
TIMES = ("seconds", "checksum", "sha256")  # keys of a JSON file that differ from run to run
TIMED = re.compile(r"\b(?:seconds?|minutes?|ms|time to|opening|\d+ s)\b|^\s*\d+%\s*$")
NUMBER_OR_ANSWER = re.compile(r"\d[\d.,]*|\b(?:True|False)\b")
CONTINUED = re.compile(r"^continuing from step .*\n", re.M)  # only a training that was killed
BLOCKS = ["table", "pre", "p", "li", "h1", "h2", "h3", "summary"]


def contents(folder, results_only=False):
    """Return the name of every file of a run's folder, with a hash of what two runs share.

    Parameters
    ----------
    folder : the folder of a run
    results_only : leave out the report
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or LEFT_OUT.search(name):
            continue
        if name == "report.html":
            if not results_only:
                shown = words_and_figures(path)
                found |= {f"{name}: {key}": shown[key] for key in shown}
            continue
        found[name] = hashlib.sha256(shared_bytes(path)).hexdigest()[:16]
    return found


def shared_bytes(path):
    """Return what two runs share of a file."""
    if path.name == "results.csv":
        return without_seconds(path).encode()
    if path.suffix == ".json":
        description = json.loads(path.read_text("utf-8"))
        for row in description.get("history", []):
            del row["seconds"]
        return json.dumps(
            {key: description[key] for key in description if key not in TIMES}
        ).encode()
    return path.read_bytes()


def without_seconds(path):
    """Return a table as text, its rows in one order: a stage that runs again moves its own."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False).drop(columns="seconds")
    return table.sort_values(list(table.columns), ignore_index=True).to_csv(index=False)


def words_and_figures(path):
    """Return the words of a report, and its figures, without times.

    Blanks and line ends depend on the moment at which a kernel sends what it has printed.
    """
    page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    figures = page.find(id="figures")
    drawings = json.loads(figures.string) if figures else []
    texts = [masked(element.get_text(" ")) for element in page.find_all(BLOCKS)]
    return {
        "words": " ".join(" ".join(texts).split()),
        "figures": " ".join(masked(json.dumps(drawing)) for drawing in drawings),
    }


def masked(text):
    """Return a text without the numbers and answers that are times."""
    text = CONTINUED.sub("", text)
    if TIMED.search(text):
        return NUMBER_OR_ANSWER.sub("", text)
    return text


def differences(reference, found):
    """Return one line for each name that only one of two contents has, or whose content differs."""
    lines = [f"{name} is missing" for name in reference if name not in found]
    lines += [f"{name} is left over" for name in found if name not in reference]
    for name in reference.keys() & found.keys():
        if reference[name] != found[name]:
            lines.append(f"{name} differs: {first_difference(reference[name], found[name])}")
    return sorted(lines)


def first_difference(text, other_text):
    """Return what two texts have where they begin to differ."""
    begin = len(os.path.commonprefix([text, other_text]))
    begin = max(begin - 20, 0)
    return f"{text[begin : begin + 80]!r}, {other_text[begin : begin + 80]!r}"
