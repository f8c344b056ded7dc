"""Downloads of git repositories and files, which are kept below ``data/``, whole or not at all."""

import http.client
import os
import re
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

from ..core import paths
from ..core.artifacts import atomic_write, fingerprint_of

# "https://github.com/jd/archive", "git@github.com:jd/archive", "github.com/jd/archive"
GIT_URL = re.compile(r"(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:|(?:www\.)?github\.com/")
TIMEOUT = 60  # seconds without an answer after which a download fails
CLONE_SECONDS = 4 * 3600  # longest time of a clone
MAX_FILE_BYTES = 1 << 28  # largest page or file: it is held in memory
MAX_CLONE_BYTES = 1 << 32  # largest folder of a clone
ADVICE = "clone it yourself and name the folder"


def repository_folder(kind: str, place: str | Path, history: bool = False) -> Path:
    """Return the folder at a place: that of a path, or of a clone of a git repository.

    An earlier clone is reused. Clones lie in ``clones/`` in the folder of
    :func:`helpers.core.paths.data`.

    Parameters
    ----------
    kind : str
        name of the source, for the error message
    place : str or Path
        path of a folder, or address of a repository
    history : bool
        clone all commits and folders but no file; by default the files of the last commit only

    Raises
    ------
    ValueError
        There is no such folder, git is missing, the repository cannot be cloned (the message holds
        git's error), or it is larger than MAX_CLONE_BYTES.
    """
    url = str(place)
    if not GIT_URL.match(url):
        folder = paths.resolve(place)
        if not folder.is_dir():
            raise ValueError(f"{kind}: {place} is not a folder or the address of a git repository")
        return folder

    words = re.split(r"[/:]+", re.sub(r"\.git/*$|/+$", "", url))
    name = re.sub(r"[^\w.-]", "-", "-".join(words[-2:])).strip(".-")
    # many archives are called "archive": the hash of the address keeps them apart
    folder = paths.data() / "clones" / f"{name}-{fingerprint_of(url)[:6]}"
    if history:
        folder = folder.with_name(f"{folder.name}.git")
    if folder.is_dir():
        shown_folder = paths.display_path(folder)
        print(f"reusing the clone of {url} in {shown_folder} (remove it to fetch anew)")
        return folder
    if url.startswith(("github.com/", "www.github.com/")):
        url = f"https://{url}"
    print(f"cloning {url} into {paths.display_path(folder)}")
    with atomic_write(folder) as partial_folder:
        _clone(url, partial_folder, history)
    return folder


def _clone(url, folder, history):
    """Clone a repository into a folder, of limited time and size."""
    extent = ["--depth", "1"]
    if history:
        extent = ["--bare", "--filter=blob:none"]
    command = ["git", "clone", "--quiet", *extent, "--", url, str(folder)]
    # no prompt: a private or misspelt address must fail, not wait for a password
    environment = os.environ | {"GIT_TERMINAL_PROMPT": "0"}
    options = {"capture_output": True, "text": True, "env": environment, "timeout": CLONE_SECONDS}
    try:
        subprocess.run(command, check=True, **options)
    except FileNotFoundError:
        raise ValueError("cloning needs git, which is not installed") from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip()[-500:]
        raise ValueError(f"git could not clone {url}: {reason}") from None
    except subprocess.TimeoutExpired:
        raise ValueError(f"cloning {url} took {CLONE_SECONDS:,} seconds; {ADVICE}") from None
    if sum(path.lstat().st_size for path in folder.rglob("*")) > MAX_CLONE_BYTES:
        raise ValueError(f"{url} is larger than {MAX_CLONE_BYTES:,} bytes; {ADVICE}")


def same_host(url: str, target: str) -> bool:
    """Return whether a target is an http(s) address on the host of ``url``.

    Parameters
    ----------
    url : str
        an http(s) address
    target : str
        address that is compared with ``url``; any text, valid or not
    """
    try:
        address = urllib.parse.urlsplit(target)
    except ValueError:  # not a valid address
        return False
    is_web = address.scheme in ("http", "https") and address.hostname is not None
    return is_web and address.hostname == urllib.parse.urlsplit(url).hostname


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Redirect handler that follows a redirect only within the host that the user named."""

    def redirect_request(self, request, answer, code, message, headers, target):
        if not same_host(request.full_url, target):
            raise ValueError(
                f"it leads to {target}, which is another host or no http(s) address; "
                "if that is what you want, give it as the location"
            )
        return super().redirect_request(request, answer, code, message, headers, target)


def fetch_bytes(url: str) -> bytes:
    """Return the bytes at an http(s) address, read into memory.

    Raises
    ------
    ValueError
        They are missing, cut off or more than MAX_FILE_BYTES; the message names the address.
    """
    try:
        if not same_host(url, url):
            raise ValueError("only http(s) addresses are fetched")
        request = urllib.request.Request(url, headers={"User-Agent": "authorbook"})
        with urllib.request.build_opener(_SameHost).open(request, timeout=TIMEOUT) as answer:
            content = answer.read(MAX_FILE_BYTES + 1)
            if len(content) > MAX_FILE_BYTES:
                raise ValueError(
                    f"it is larger than {MAX_FILE_BYTES:,} bytes; "
                    "download it yourself and give the file"
                )
            if answer.length:
                raise ValueError(
                    f"it was cut off {answer.length:,} bytes before its end; try again"
                )
    # OSError includes the errors of urllib
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ValueError(f"cannot fetch {url}: {error or type(error).__name__}") from None
    return content
