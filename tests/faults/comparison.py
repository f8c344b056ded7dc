"""What a run has made, in a form that is equal for two runs that found the same.

Seconds differ from run to run, and so do the checksums of files that hold seconds. All other bytes
must be equal: posts, splits, tokenizer, token stores, weights; results and learning curves without
their seconds. Of the report, which is made of these, it is said that it is there.
"""

import hashlib
import json
import re

import pandas as pd

# of a run's folder: work files that no later step reads, locks, and the log of questions
LEFT_OUT = re.compile(r"^(?:collect|notebooks)/|(?:^|/)\.[^/]*$|^asked\.jsonl$")
TIMES = ("seconds", "checksum", "sha256")  # keys of a JSON file that differ from run to run


def contents(folder):
    """Return the name of every file of a run's folder, with a hash of what two runs share."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not LEFT_OUT.search(name):
            found[name] = hashlib.sha256(shared_bytes(path)).hexdigest()[:16]
    return found


def shared_bytes(path):
    """Return what two runs share of a file."""
    if path.name == "report.html":
        return b""
    if path.name == "results.csv":  # in one order: a stage that runs again moves its own rows
        table = pd.read_csv(path, dtype=str, keep_default_na=False).drop(columns="seconds")
        return table.sort_values(list(table.columns)).to_csv(index=False).encode()
    if path.suffix == ".json":
        description = json.loads(path.read_text("utf-8"))
        for row in description.get("history", []):
            del row["seconds"]
        shared = {key: description[key] for key in description if key not in TIMES}
        return json.dumps(shared).encode()
    return path.read_bytes()


def differences(reference, found):
    """Return one line for each name that only one of two contents has, or whose content differs."""
    lines = [f"{name} is missing" for name in reference if name not in found]
    lines += [f"{name} is left over" for name in found if name not in reference]
    for name in reference.keys() & found.keys():
        if reference[name] != found[name]:
            lines.append(f"{name} differs")
    return sorted(lines)
