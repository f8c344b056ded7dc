"""What comes from the network: from the named host, over http(s), whole, of a limited size."""

import http.server
import subprocess
import threading
from collections import Counter
from contextlib import contextmanager

import pytest

from helpers.core import paths
from helpers.sources import git, open_source, pipermail
from helpers.sources.git import repository_folder
from helpers.sources.pipermail import fetch_bytes, same_host

MONTH = (
    b"From a at b.c  Mon Jul  2 10:00:00 2007\n"
    b"From: a at b.c (A)\nDate: Mon, 2 Jul 2007 10:00:00 +0000\n\nwords\n"
)


@contextmanager
def server(answers, name="127.0.0.1"):
    """Serve {path: (status, headers, body)}; yields the address without a slash at its end."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def do_GET(self):
            status, headers, body = answers.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        threading.Thread(target=http_server.serve_forever, daemon=True).start()
        yield f"http://{name}:{http_server.server_address[1]}"
        http_server.shutdown()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(paths, "ROOT", tmp_path)


@pytest.mark.parametrize(
    "target, same",
    [
        ("https://lists.org/x", True),
        ("HTTP://LISTS.org:80/", True),
        ("http://lists.org.evil.net/", False),
        ("http://lists.org@evil.net/", False),
        ("ftp://lists.org/x", False),
        ("file://lists.org/etc/passwd", False),
        ("http://[lists.org/", False),
        ("http:///x", False),
        ("", False),
    ],
)
def test_same_host(target, same):
    assert same_host("http://lists.org/list/", target) is same


@pytest.mark.parametrize(
    "url", ["file:///etc/hostname", "ftp://127.0.0.1/x", "/etc/hostname", "data:,x", "http:///x"]
)
def test_only_http_is_fetched(url):
    with pytest.raises(ValueError, match="^cannot fetch .*only http"):
        fetch_bytes(url)


def test_a_redirect_stays_on_its_host(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    with server({"/x": (200, {}, b"other host")}, "localhost") as other_host:
        answers = {
            "/file": (302, {"Location": secret.as_uri()}, b""),
            "/other": (302, {"Location": f"{other_host}/x"}, b""),
            "/near": (302, {"Location": "/page"}, b""),
            "/page": (200, {}, b"page"),
        }
        with server(answers) as base:
            assert fetch_bytes(f"{base}/near") == b"page"
            with pytest.raises(
                ValueError, match=f"^cannot fetch {base}/file: .*{secret.as_uri()}.* is not allowed"
            ):
                fetch_bytes(f"{base}/file")
            with pytest.raises(
                ValueError,
                match=f"^cannot fetch {base}/other: it leads to {other_host}/x, .*another host",
            ):
                fetch_bytes(f"{base}/other")


def test_a_cut_or_endless_download_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(pipermail, "MAX_FILE_BYTES", 3 << 20)
    chunked = {"Transfer-Encoding": "chunked"}
    answers = {
        "/list/cut.txt": (200, {"Content-Length": "1000"}, b"x" * 10),
        "/list/long.txt": (200, {}, b"x" * (5 << 20)),
        "/list/whole.txt": (200, {"Content-Length": str(len(MONTH))}, MONTH),
        "/list/chunks.txt": (200, chunked, b"5\r\nhello\r\n5\r\nhe"),
    }
    with server(answers) as base:
        for name, message in (
            ("cut", "cut off 990 bytes before its end"),
            ("long", "larger than 3,145,728 bytes"),
        ):
            (part,) = pipermail.parts(f"{base}/list/{name}.txt")
            with pytest.raises(
                ValueError, match=f"cannot fetch {base}/list/{name}.txt: .*{message}"
            ):
                list(part.read(Counter()))
        (part,) = pipermail.parts(f"{base}/list/whole.txt")
        assert len(next(part.read(Counter()))) == 1
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["whole.txt"]


def test_a_clone_has_a_limited_size(tmp_path, monkeypatch):
    origin = tmp_path / "team" / "archive"
    origin.mkdir(parents=True)
    (origin / "zeros").write_bytes(bytes(3 << 20))  # a kilobyte to send
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=origin, check=True)
    monkeypatch.setattr(git, "MAX_CLONE_BYTES", 2 << 20)
    with pytest.raises(
        ValueError, match=f"^{origin.as_uri()} is larger than 2,097,152 bytes; clone it yourself"
    ):
        repository_folder("zulip", origin.as_uri())
    assert not list((tmp_path / "data" / "clones").iterdir())
    monkeypatch.setattr(git, "MAX_CLONE_BYTES", 1 << 30)
    assert (repository_folder("zulip", origin.as_uri()) / "zeros").stat().st_size == 3 << 20


def test_a_clone_has_a_limited_time_and_needs_git(tmp_path, monkeypatch):
    url = (tmp_path / "team" / "archive").as_uri()
    monkeypatch.setattr(git, "CLONE_SECONDS", 0)
    with pytest.raises(ValueError, match=f"^cloning {url} took 0 seconds; clone it yourself"):
        repository_folder("git", url)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match="needs git, which is not installed"):
        repository_folder("git", url)
    with pytest.raises(ValueError, match="needs git, which is not installed"):
        open_source("git", str(tmp_path))
    assert not list((tmp_path / "data" / "clones").iterdir())


def test_links_to_other_hosts_and_to_files_are_not_followed(tmp_path, capsys):
    (tmp_path / "private").mkdir()
    (tmp_path / "private/2001-May.txt").write_bytes(MONTH)
    with server({"/x/2003-May.txt": (200, {}, MONTH)}, "localhost") as other_host:
        links = [
            (tmp_path / "private/2001-May.txt").as_uri(),
            f"{other_host}/x/2003-May.txt",
            "http://[2004-May.txt",
            "2002-May.txt",
            "//127.0.0.2/2005-May.txt",
        ]
        page = "".join(f'<a href="{link}">month</a>' for link in links).encode()
        with server({"/list/": (200, {}, page), "/list/2002-May.txt": (200, {}, MONTH)}) as base:
            parts = pipermail.parts(f"{base}/list/")
            assert [part.name for part in parts] == ["list/2002-May"]
            assert (
                "4 links that leave its host are not followed, such as file:"
                in capsys.readouterr().out
            )
