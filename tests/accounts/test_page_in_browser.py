"""The page of an answer saves decisions in a real browser; it is skipped where there is none."""

import json
import shutil
import subprocess
import time
import urllib.request

import pytest

from helpers.accounts.decisions import read_decisions
from helpers.accounts.page import render

websocket = pytest.importorskip("websocket")
BROWSERS = ("chromium", "google-chrome", "chromium-browser")
NOTE = 'not he, "she";\u00a0=1+1'
SECONDS = 30  # that a browser may take to begin, or to save a file
DECIDE = """
const pairs = document.querySelectorAll(".pair");
pairs[0].querySelector("input[value=same]").click();
pairs[2].querySelector("input[value=different]").click();
pairs[2].querySelector(".note input").value = %s;
document.getElementById("who").value = "me, you";
document.getElementById("save").click();
document.getElementById("saved").textContent
"""


class Browser:
    """A page in a browser without a window, spoken to by the protocol of its developer tools."""

    def __init__(self, command, page, folder):
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        options += ["--remote-allow-origins=*", f"--user-data-dir={folder / 'profile'}"]
        self.process = subprocess.Popen(
            [command, *options, page.as_uri()], stderr=subprocess.DEVNULL
        )
        port_file = folder / "profile" / "DevToolsActivePort"
        wait_for(lambda: port_file.exists() and port_file.read_text())
        port = port_file.read_text().split()[0]
        (tab,) = wait_for(lambda: self.tabs(port))
        self.socket = websocket.create_connection(tab["webSocketDebuggerUrl"], timeout=SECONDS)
        self.calls = 0

    @staticmethod
    def tabs(port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            return [tab for tab in json.load(answer) if tab["type"] == "page"]

    def call(self, method, **parameters):
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": parameters}
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.calls:
                return answer["result"]

    def value_of(self, script):
        return self.call("Runtime.evaluate", expression=script)["result"].get("value")

    def close(self):
        self.socket.close()
        self.process.kill()
        self.process.wait()


def wait_for(condition):
    """Return the value of a condition as soon as it is true."""
    for _ in range(10 * SECONDS):
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise TimeoutError(f"nothing came within {SECONDS} seconds")


@pytest.fixture
def browser(record, tmp_path):
    commands = [path for path in map(shutil.which, BROWSERS) if path]
    if not commands:
        pytest.skip("there is no Chromium")
    page = tmp_path / "page.html"
    page.write_text(render(record), "utf-8")
    browser = Browser(commands[0], page, tmp_path)
    yield browser
    browser.close()


def test_the_page_saves_what_was_decided(browser, tmp_path, record):
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    loaded = "document.readyState == 'complete' && document.querySelectorAll('.pair').length"
    assert wait_for(lambda: browser.value_of(loaded)) == len(record["pairs"])
    browser.value_of("document.getElementById('save').click()")
    message = browser.value_of("document.getElementById('saved').textContent")
    assert message == "Nothing is decided yet."
    assert browser.value_of(DECIDE % json.dumps(NOTE)) == "2 decided."
    saved = tmp_path / "decisions.csv"
    wait_for(saved.exists)
    rows = read_decisions(saved)
    keys = [(record["pairs"][row]["key_a"], record["pairs"][row]["key_b"]) for row in (0, 2)]
    assert list(zip(rows.account_a, rows.account_b, strict=True)) == keys
    assert list(rows.decision) == ["same", "different"]
    assert set(rows.who) == {"me, you"}
    assert list(rows.note) == ["", NOTE]
