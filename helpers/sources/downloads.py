"""Downloads of git repositories and files, which are kept below ``data/``, whole or not at all."""

import http.client
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..core import paths
from ..core.artifacts import atomic_write, fingerprint_of
from ..core.messages import printable

# "https://github.com/jd/archive", "git@github.com:jd/archive", "github.com/jd/archive"
GIT_URL = re.compile(r"(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:|(?:www\.)?github\.com/")
GITHUB_WITHOUT_SCHEME = re.compile(r"(?:www\.)?github\.com/")
TIMEOUT = 60  # seconds without an answer after which a download fails
MAX_PAGE_BYTES = 1 << 26  # largest page: it is held in memory
MAX_FILE_BYTES = 1 << 32  # largest file and largest folder of a clone
# a redirect between these ports of one host, such as from http to https, stays on the same server;
# None: the address names no port
PORTS = {None, 80, 443}


def clone_repository(url: str, history: bool = False) -> Path:
    """Return the folder of a clone of a git repository; an earlier clone is reused.

    Clones lie in ``clones/`` in the folder of :func:`helpers.core.paths.data`.

    Parameters
    ----------
    url : str
        address of the repository
    history : bool
        fetch all commits and folders but no file; by default the files of the last commit only

    Raises
    ------
    ValueError
        Git is missing, the repository cannot be cloned (the message holds git's error), or it is
        larger than MAX_FILE_BYTES.
    """
    words = re.split(r"[/:]+", re.sub(r"\.git/*$|/+$", "", url))
    name = re.sub(r"[^\w.-]", "-", "-".join(words[-2:])).strip(".-")
    # many archives are called "archive": the hash of the address keeps them apart
    folder = paths.data() / "clones" / f"{name}-{fingerprint_of(url)[:6]}"
    if history:
        folder = folder.with_name(f"{folder.name}.git")
    shown_folder = paths.display_path(folder)
    if folder.is_dir():
        print(f"reusing the clone of {url} in {shown_folder} (remove it to fetch anew)")
        return folder
    if GITHUB_WITHOUT_SCHEME.match(url):
        url = f"https://{url}"
    print(f"cloning {url} into {shown_folder}")
    if not shutil.which("git"):
        raise ValueError("cloning needs git, which is not installed")
    with atomic_write(folder) as partial_folder:
        _clone(url, partial_folder, history)
    return folder


def _clone(url, folder, history):
    """Clone a repository; stop where the folder, checked every second, is over MAX_FILE_BYTES."""
    extent = ["--depth", "1"]
    if history:
        extent = ["--bare", "--filter=blob:none"]
    command = ["git", "clone", "--quiet", *extent, "--", url, str(folder)]
    # no prompt: a private or misspelt address must fail, not wait for a password
    environment = os.environ | {"GIT_TERMINAL_PROMPT": "0"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as git:
        while git.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                _, errors = git.communicate(timeout=1)
            if _folder_bytes(folder) > MAX_FILE_BYTES:
                git.kill()
                raise ValueError(
                    f"{url} is larger than {MAX_FILE_BYTES:,} bytes; "
                    "clone it yourself and name the folder"
                )
    if git.returncode:
        raise ValueError(f"git could not clone {url}: {errors.strip()[-500:]}")


def _folder_bytes(folder):
    """Return the size of a folder's files; less where a file vanishes while they are counted."""
    n_bytes = 0
    with suppress(FileNotFoundError):  # git renames and removes files while it clones
        for path in folder.rglob("*"):
            n_bytes += path.lstat().st_size
    return n_bytes


def same_host(url: str, target: str) -> bool:
    """Return whether the target is an http(s) address on the host of ``url``.

    Parameters
    ----------
    url : str
        an http(s) address
    target : str
        address that is compared with ``url``; any text, valid or not
    """
    try:
        host = urllib.parse.urlsplit(url)
        target_host = urllib.parse.urlsplit(target)
        ports = {host.port, target_host.port}
    except ValueError:  # not a valid address
        return False
    if target_host.scheme not in ("http", "https") or not target_host.hostname:
        return False
    return host.hostname == target_host.hostname and (len(ports) == 1 or ports <= PORTS)


def same_host_links(url: str, links: list[str]) -> list[str]:
    """Return the addresses of those links of a page that stay on its host, each once.

    The number of links that leave the host is printed.

    Parameters
    ----------
    url : str
        address of the page
    links : list of str
        links of the page, absolute or relative to it
    """
    addresses = {}
    links_out = []
    for link in links:
        with suppress(ValueError):  # not a valid address: counted as leaving the host
            link = urllib.parse.urljoin(url, link)
        if same_host(url, link):
            addresses[link] = None
        else:
            links_out.append(link)
    if links_out:
        print(
            f"{url}: {len(links_out)} links that leave its host are not followed, "
            f"such as {printable(links_out[0])}"
        )
    return list(addresses)


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Redirect handler that follows a redirect only within the host that the user named."""

    def redirect_request(self, request, answer, code, message, headers, target):
        if not same_host(request.full_url, target):
            raise ValueError(
                f"it leads to {target}, which is another host or no http(s) address; "
                "if that is what you want, give it as the location"
            )
        return super().redirect_request(request, answer, code, message, headers, target)


def _pieces(url: str, max_bytes: int) -> Iterator[bytes]:
    """Yield the bytes at an http(s) address, a megabyte at a time; any failure is a ValueError."""
    try:
        if not same_host(url, url):
            raise ValueError("only http(s) addresses are fetched")
        request = urllib.request.Request(url, headers={"User-Agent": "authorbook"})
        with urllib.request.build_opener(_SameHost).open(request, timeout=TIMEOUT) as answer:
            n_bytes = 0
            while piece := answer.read(1 << 20):
                n_bytes += len(piece)
                if n_bytes > max_bytes:
                    raise ValueError(
                        f"it is larger than {max_bytes:,} bytes; "
                        "download it yourself and give the file"
                    )
                yield piece
            expected_bytes = int(answer.headers.get("Content-Length") or 0)
            if n_bytes < expected_bytes:
                raise ValueError(
                    f"it was cut off after {n_bytes:,} of {expected_bytes:,} bytes; try again"
                )
    # OSError includes the errors of urllib
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ValueError(f"cannot fetch {url}: {error or type(error).__name__}") from None


def fetch_bytes(url: str) -> bytes:
    """Return the bytes of a page, read into memory.

    Raises
    ------
    ValueError
        The page is missing, cut off or larger than MAX_PAGE_BYTES; the message names its address.
    """
    return b"".join(_pieces(url, MAX_PAGE_BYTES))


def download(path: Path, url: str | None) -> Path:
    """Return ``path`` after downloading the file to it, unless it is there already.

    Parameters
    ----------
    path : Path
        place of the file
    url : str or None
        address to download it from; None: nothing is downloaded

    Raises
    ------
    ValueError
        The file is missing at ``url``, cut off or larger than MAX_FILE_BYTES.
    """
    if url and not path.exists():
        with atomic_write(path) as partial_path, open(partial_path, "wb") as file:
            file.writelines(_pieces(url, MAX_FILE_BYTES))
    return path
