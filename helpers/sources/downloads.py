"""What comes from the network: git repositories and files, kept below ``data/`` under their name once whole."""

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

from helpers.core import paths
from helpers.core.artifacts import atomic_write, fingerprint_of

GIT_URL = re.compile(r"(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:|(?:www\.)?github\.com/")
TIMEOUT = 60  # seconds without an answer
MAX_PAGE, MAX_FILE = (
    1 << 26,
    1 << 32,
)  # bytes of a page, which is held in memory, and of a file or a clone
PORTS = {None, 80, 443}  # a server that sends from http to https is the same one


def clone_repository(url: str) -> Path:
    """The shallow clone of a git repository in ``data/clones/``, made once. Raises ValueError, with git's words."""
    words = re.split(r"[/:]+", re.sub(r"\.git/*$|/+$", "", url))
    name = re.sub(r"[^\w.-]", "-", "-".join(words[-2:])).strip(".-")
    # every second archive is called "archive": the hash keeps two of them apart
    folder = paths.ROOT / "data" / "clones" / f"{name}-{fingerprint_of(url)[:6]}"
    if folder.is_dir():
        print(f"reusing the clone of {url} in data/clones/{folder.name} (remove it to fetch anew)")
        return folder
    url = f"https://{url}" if re.match(r"(?:www\.)?github\.com/", url) else url
    print(f"cloning {url} into data/clones/{folder.name}")
    if not shutil.which("git"):
        raise ValueError("cloning needs git, which is not installed")
    command, size = ["git", "clone", "--quiet", "--depth", "1", "--", url], 0
    # no prompt: a private or misspelt address must fail, not wait for a password
    asked = {
        "stderr": subprocess.PIPE,
        "text": True,
        "env": os.environ | {"GIT_TERMINAL_PROMPT": "0"},
    }
    with (
        atomic_write(folder) as partial,
        subprocess.Popen([*command, str(partial)], **asked) as git,
    ):
        while git.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                said = git.communicate(timeout=1)[1]
            with suppress(FileNotFoundError):  # git renames and removes what it has received
                size = sum(path.lstat().st_size for path in partial.rglob("*"))
            if size > MAX_FILE:
                git.kill()
                raise ValueError(
                    f"{url} is larger than {MAX_FILE:,} bytes; clone it yourself and name the folder"
                )
        if git.returncode:
            raise ValueError(f"git could not clone {url}: {said.strip()[-500:]}")
    return folder


def same_host(url: str, other: str) -> bool:
    """Is ``other`` an http(s) address on the host of ``url``?"""
    try:
        one, two = map(urllib.parse.urlsplit, (url, other))
        same_port = one.port == two.port or {one.port, two.port} <= PORTS
    except ValueError:  # an address that is none
        return False
    return (
        two.scheme in ("http", "https")
        and bool(two.hostname)
        and one.hostname == two.hostname
        and same_port
    )


def same_host_links(url: str, links: list[str]) -> list[str]:
    """The addresses of a page's links, once each; how many leave its host, and are not followed, is said."""
    addresses, left = {}, []
    for link in links:
        with suppress(ValueError):  # an address that is none
            link = urllib.parse.urljoin(url, link)
        if same_host(url, link):
            addresses[link] = None
        else:
            left.append(link)
    if left:
        print(f"{url}: {len(left)} links that leave its host are not followed, such as {left[0]}")
    return list(addresses)


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follow a redirect only within the host that the user named."""

    def redirect_request(self, request, answer, code, message, headers, target):
        if not same_host(request.full_url, target):
            raise ValueError(f"it leads to {target}, which is another host or no http(s) address; if that is what you "
                             "want, give it as the location")  # fmt: skip
        return super().redirect_request(request, answer, code, message, headers, target)


def _pieces(url: str, limit: int) -> Iterator[bytes]:
    """The bytes at an http(s) address, a megabyte at a time."""
    try:
        if not same_host(url, url):
            raise ValueError("only http(s) addresses are fetched")
        request = urllib.request.Request(url, headers={"User-Agent": "authorbook"})
        with urllib.request.build_opener(_SameHost).open(request, timeout=TIMEOUT) as answer:
            size, whole = 0, answer.headers.get("Content-Length")
            while piece := answer.read(1 << 20):
                size += len(piece)
                if size > limit:
                    raise ValueError(
                        f"it is larger than {limit:,} bytes; download it yourself and give the file"
                    )
                yield piece
            if whole and size < int(whole):
                raise ValueError(
                    f"it was cut off after {size:,} of {int(whole):,} bytes; try again"
                )
    except (
        OSError,
        ValueError,
        http.client.HTTPException,
    ) as error:  # urllib's errors are OSErrors
        raise ValueError(f"cannot fetch {url}: {error or type(error).__name__}") from None


def fetch_bytes(url: str) -> bytes:
    """The bytes of a page. Raises ValueError that names it where it is not there, not whole or too large."""
    return b"".join(_pieces(url, MAX_PAGE))


def download(path: Path, url: str | None) -> Path:
    """The file at ``path``, downloaded first where a URL is given and it is not there yet. Raises as :func:`fetch_bytes`."""
    if url and not path.exists():
        with atomic_write(path) as partial, open(partial, "wb") as file:
            file.writelines(_pieces(url, MAX_FILE))
    return path
