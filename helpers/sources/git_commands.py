"""Commands of git that read a repository and execute nothing of it.

The settings of a repository could name programs that git starts.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# settings of a repository that would start programs or use the network
SAFE = ["-c", "core.fsmonitor=false", "-c", "protocol.allow=never", "-c", "log.showSignature=false"]
SAFE_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat"}
DAMAGED = "git: the history of {} is damaged or not there in full: `git fsck` says where"


def _command(root, words):
    return ["git", "-C", str(root), *SAFE, *words]


def git_output(root: Path, *words: str) -> str:
    """Return what a command of git prints, without white space around it.

    Parameters
    ----------
    root : Path
        folder of the repository
    *words : str
        the command and its options

    Raises
    ------
    ValueError
        Git is missing or refuses; the message names the folder.
    """
    environment = os.environ | SAFE_ENVIRONMENT
    try:
        answer = subprocess.run(
            _command(root, words),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
        )
    except FileNotFoundError:
        raise ValueError("git: reading a history needs git, which is not installed") from None
    if answer.returncode:
        reason = (answer.stderr.strip().splitlines() or ["no reason given"])[0]
        raise ValueError(f"git: {root.name} holds no history that git can read: {reason}")
    return answer.stdout.strip()


@contextmanager
def git_process(root: Path, *words: str) -> Iterator[subprocess.Popen]:
    """Run a command of git whose output, as bytes, is read while it works.

    Parameters
    ----------
    root : Path
        folder of the repository
    *words : str
        the command and its options

    Raises
    ------
    ValueError
        The command failed; the message names the folder.
    """
    process = subprocess.Popen(
        _command(root, words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | SAFE_ENVIRONMENT,
    )
    with process:
        yield process
    if process.returncode:
        raise ValueError(DAMAGED.format(root.name))
