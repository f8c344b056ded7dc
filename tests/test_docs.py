"""The pages: every table is what the results say, README is short, and no page names a file that is not there."""

import importlib.util
import re

import pandas as pd
import pytest
import yaml

from helpers.runs import paths

_spec = importlib.util.spec_from_file_location("build", paths.ROOT / "docs" / "build.py")
build = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
each_page = pytest.mark.parametrize("page", build.PAGES, ids=lambda page: page.name)


@each_page
def test_tables_are_what_the_results_say(page):
    text = page.read_text(encoding="utf-8")
    assert build.filled(text) == text, "run `.venv/bin/python docs/build.py`"
    assert text.count("<!-- table\n") == text.count("<!-- end -->") == len(build.BLOCK.findall(text))


@each_page
def test_links_lead_somewhere(page):
    assert not [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]


def test_readme_is_short_and_types_no_result():
    text = paths.ROOT.joinpath("README.md").read_text(encoding="utf-8")
    lines = build.BLOCK.sub("", text).splitlines()
    assert len(text.splitlines()) <= 100 and len(lines) <= 80
    assert not re.findall(r"\b0\.\d{2,}", "\n".join(lines)), "a result stands in prose: let docs/build.py write it"


@pytest.mark.parametrize("page", ["results.md", "data.md", "design.md"])
def test_a_page_types_no_score(page):
    text = build.BLOCK.sub("", (paths.ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert not re.findall(r"(?<!temperature )(?<!prior of )\b0\.\d{2,}", text), "let a table say it: docs/build.py"


ROWS = [("a", "T", 0, "", "MRR", 0.5, 0.4, 0.6), ("a", "T, seed 1", 1, "", "MRR", 0.7, 0.6, 0.8),
        ("b", "U", 0, "", "MRR", 0.65, None, None), ("a", "T", 0, "b", "MRR_difference", -0.15, -0.2, -0.1)]  # fmt: skip


@pytest.fixture
def results(tmp_path):
    columns = ["model", "label", "seed", "base", "metric", "value", "low", "high"]
    pd.DataFrame(ROWS, columns=columns).assign(protocol="ranking", split="test").to_csv(tmp_path / "r.csv", index=False)
    return {"file": str(tmp_path / "r.csv"), "protocol": "ranking", "split": "test", "columns": ["MRR"]}


def test_a_table_by_hand(results):
    assert build.table(**results).splitlines() == [
        "| model | MRR |", "|---|---|", "| U | 0.650 |", "| T | 0.600 ± 0.141 (0.400 - 0.600) |"]  # fmt: skip
    assert build.table(**results, rows=["T"]).splitlines()[2:] == ["| T | 0.600 ± 0.141 (0.400 - 0.600) |"]
    assert build.table(**results, base="b", first="minus U").splitlines() == [
        "| minus U | MRR |", "|---|---|", "| T | -0.150 (-0.200 to -0.100) |"]  # fmt: skip
    with pytest.raises(ValueError, match="0 MRR of 'V' in ranking, test"):
        build.table(**results, rows=["V"])
    with pytest.raises(ValueError, match="0 R@8 of 'T'"):
        build.table(**results | {"columns": ["R@8"]}, rows=["T"])
    frame = pd.read_csv(results["file"])
    pd.concat([frame, frame[:1].assign(model="another")]).to_csv(results["file"], index=False)
    with pytest.raises(ValueError, match="3 MRR of 'T' in ranking, test"):
        build.table(**results)


def test_a_table_over_splits_by_hand(results):
    frame = pd.read_csv(results["file"]).assign(max_tokens=32)
    other = frame[frame.model == "a"].assign(split="other", value=frame.value / 2)
    alone = frame[frame.model == "b"].assign(label="only here", model="c")
    second = frame[frame.model == "b"].assign(split="other", value=0.35)
    pd.concat([frame, other, alone, second]).to_csv(results["file"], index=False)
    about = {"file": results["file"], "protocol": "ranking", "metric": "MRR", "unit": "U"}
    assert build.lines(about | {"splits": {"test": "one", "other": "two"}}).splitlines() == [
        "| model | one | two | mean | times U |", "|---|---|---|---|---|",
        "| U | 0.650 | 0.350 | 0.500 | 1.00 |",
        "| T | 0.600 ± 0.141 (0.400 - 0.600) | 0.300 ± 0.071 (0.400 - 0.600) | 0.450 | 0.90 |"]  # fmt: skip
    some = build.lines(about | {"splits": {"test": "one", "other": "two"}, "rows": ["T"]}).splitlines()
    assert len(some) == 3 and some[2].startswith("| T |") and some[2].endswith("| 0.90 |")
    with pytest.raises(ValueError, match="not measured on all of test, other: only here"):
        build.lines(about | {"splits": {"test": "one", "other": "two"}, "rows": ["T", "only here"]})


def test_notebooks_open_online_once_the_address_is_known():
    assert build.online("") == ""
    text = build.online("https://github.com/some.body/author-book.git")
    links = re.findall(r"\]\((https://[^)]+)\)", text)
    assert len(links) == 6 and all("some.body/author-book/" in link for link in links)
    books = [re.search(r"notebooks(?:%2F|/)(\w+\.ipynb)$", link)[1] for link in links]
    assert all((paths.NOTEBOOKS / book).exists() for book in books) and len(set(books)) == 3
    assert "git clone -q https://github.com/some.body/author-book authorbook" in text
    page = "a\n<!-- online -->\nold\n<!-- /online -->\nb"
    cited = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text("utf-8")).get("repository-code", "")
    assert build.filled(page) == f"a\n<!-- online -->\n{build.online(cited)}<!-- /online -->\nb"
    with pytest.raises(ValueError, match="not https://github.com/<owner>/<name>"):
        build.online("https://example.org/x")


def test_binder_installs_what_is_pinned():
    folder = paths.ROOT / ".binder"
    script = (folder / "postBuild").read_text("utf-8")
    assert "-c constraints.txt -e ." in script and (folder / "postBuild").stat().st_mode & 0o100
    python = re.fullmatch(r"python-(3\.\d+)\n", (folder / "runtime.txt").read_text("utf-8"))[1]
    workflow = (paths.ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    assert f'python: ["{python}"' in workflow, "a version that CI tests"
    makefile = (paths.ROOT / "Makefile").read_text("utf-8")
    assert (folder / "requirements.txt").read_text("utf-8").strip() in makefile, "the uv of make setup"


def test_a_page_is_filled(results):
    about = "".join(f"{name}: {value}\n" for name, value in results.items())
    page = f"before\n<!-- table\n{about}-->\n| old |\n<!-- end -->\nafter 0.1\n"
    once = build.filled(page)
    assert "| U | 0.650 |" in once and "old" not in once and once.startswith("before") and once.endswith("after 0.1\n")
    assert build.filled(once) == once
