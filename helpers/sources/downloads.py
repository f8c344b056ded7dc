"""What comes from the network: git repositories and files, kept below ``data/`` under their name once whole."""

import os
import re
import subprocess
import urllib.request
from pathlib import Path

from helpers.runs import paths
from helpers.runs.artifacts import fingerprint_of, atomic_write

GIT_URL = re.compile(r"(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:|(?:www\.)?github\.com/")
TIMEOUT = 60  # seconds without an answer


def is_git_url(location: str) -> bool:
    return GIT_URL.match(location) is not None


def clone(url: str) -> Path:
    """The shallow clone of a git repository under ``data/clones/``, reused where it is there already.

    Raises ValueError with git's words where it cannot be cloned.
    """
    words = re.split(r"[/:]+", re.sub(r"\.git/*$|/+$", "", url))
    name = re.sub(r"[^\w.-]", "-", "-".join(words[-2:])).strip(".-")
    # every second archive is called "archive": the hash keeps two of them apart
    folder = paths.ROOT / "data" / "clones" / f"{name}-{fingerprint_of(url)[:6]}"
    if folder.is_dir():
        print(f"reusing the clone of {url} in data/clones/{folder.name} (remove it to fetch anew)")
        return folder
    url = f"https://{url}" if re.match(r"(?:www\.)?github\.com/", url) else url
    print(f"cloning {url} into data/clones/{folder.name}")
    try:
        with atomic_write(folder) as partial:
            # no prompt: a private or misspelt address must fail, not wait for a password
            subprocess.run(
                ["git", "clone", "--quiet", "--depth", "1", "--", url, str(partial)],
                check=True, capture_output=True, text=True, env=os.environ | {"GIT_TERMINAL_PROMPT": "0"},
            )  # fmt: skip
    except FileNotFoundError:
        raise ValueError("cloning needs git, which is not installed") from None
    except subprocess.CalledProcessError as error:
        raise ValueError(f"git could not clone {url}: {error.stderr.strip()[-500:]}") from None
    return folder


def get(url: str) -> bytes:
    """The bytes at an http(s) address. Raises ValueError that names it where there are none."""
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "authorbook"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            return answer.read()
    except (OSError, ValueError) as error:  # urllib's errors are OSErrors
        raise ValueError(f"cannot fetch {url}: {error}") from None


def fetched(path: Path, url: str | None) -> Path:
    """The file at ``path``, downloaded first where a URL is given and it is not there yet."""
    if url and not path.exists():
        data = get(url)
        with atomic_write(path) as partial:
            partial.write_bytes(data)
    return path
