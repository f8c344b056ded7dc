"""The page of an answer saves decisions in a real browser; it is skipped where there is none."""

import base64
import hashlib
import json
import shutil
import subprocess
from html import unescape

import pytest

from helpers.accounts.decisions import read_decisions
from helpers.accounts.page import render

BROWSERS = [path for path in map(shutil.which, ("chromium", "google-chrome")) if path]
NOTE = 'not he, "she";\u00a0=1+1'
# what a person does; the file that the browser would save stands in the page instead
DECIDE = """
const pairs = document.querySelectorAll(".pair");
const save = () => document.getElementById("save").click();
const said = () => document.getElementById("saved").textContent;
save();
const nothing = said();
pairs[0].querySelector("input[value=same]").click();
pairs[2].querySelector("input[value=different]").click();
pairs[2].querySelector(".note input").value = %s;
document.getElementById("who").value = "me, you";
URL.createObjectURL = (blob) => {
  blob.text().then((file) => {
    document.body.textContent = JSON.stringify([nothing, said(), file]);
  });
  return "#";
};
save();
"""


@pytest.mark.skipif(not BROWSERS, reason="there is no Chromium")
def test_the_page_saves_what_was_decided(record, tmp_path):
    script = DECIDE % json.dumps(NOTE)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = unescape(render(record)).replace("script-src ", f"script-src 'sha256-{digest}' ")
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'x'}"]
    options += ["--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run(
        [BROWSERS[0], *options, path.as_uri()], capture_output=True, text=True, timeout=60
    )
    shown = unescape(done.stdout.split("<body>")[1].split("</body>")[0])
    nothing, decided, file = json.loads(shown)
    assert (nothing, decided) == ("Nothing is decided yet.", "2 decided.")
    saved = tmp_path / "decisions.csv"
    saved.write_text(file, "utf-8", newline="")
    rows = read_decisions(saved)
    keys = [(record["pairs"][row]["key_a"], record["pairs"][row]["key_b"]) for row in (0, 2)]
    assert list(zip(rows.account_a, rows.account_b, strict=True)) == keys
    assert list(rows.decision) == ["same", "different"]
    assert set(rows.who) == {"me, you"}
    assert list(rows.note) == ["", NOTE]
