"""The runner and its report, on toy notebooks: order, resume, failures, ensure, and what a page may hold."""

import json
import os
import re

import nbformat
import pytest

from helpers import paths, publish, report, reproduce, results
from helpers.stages import stages

HOSTILE = "<script>fetch('http://example.org')</script>"


DECLARED = "run: str = 'demo'  # name of the run\nsize: int = 1  # how many\noptions: dict = {}  # nested"


def notebook(path, *cells, parameters=DECLARED):
    """Write a notebook: a str is a code cell, a 1-tuple is Markdown."""
    make, made = nbformat.v4, []
    if parameters:
        made.append(make.new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    made += [make.new_markdown_cell(*c) if isinstance(c, tuple) else make.new_code_cell(c) for c in cells]
    kernel = {"kernelspec": publish.KERNELSPEC, "language_info": {"name": "python"}}
    nbformat.write(make.new_notebook(cells=made, metadata=kernel), path)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Two notebooks and a run with one variant; each execution adds a line to log.txt."""
    for name in ("notebooks", "params/demo", "outputs"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    log = f"with open({str(tmp_path / 'log.txt')!r}, 'a') as file:\n    print(run, size, os.getcwd(), file=file)"
    notebook(tmp_path / "notebooks/01_a.ipynb", "import os\n" + log, "print(size)")
    notebook(tmp_path / "notebooks/02_b.ipynb", ("# Second",), "import os\n" + log)
    values = {"01_a": "size: 3\noptions: {x: 1}", "02_b": "", "02_b.Z": "size: 9", "02_b.T": "size: 8"}
    for name, text in values.items():
        (tmp_path / f"params/demo/{name}.yaml").write_text(text)
    return tmp_path


def log(toy):
    path = toy / "log.txt"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def params(toy, name, text):
    (toy / f"params/demo/{name}.yaml").write_text(text)


def test_stages_are_in_order_base_first(toy):
    found = stages("demo")
    assert [stage.name for stage in found] == ["01_a", "02_b", "02_b.T", "02_b.Z"]
    assert [stage.parameters.get("size") for stage in found] == [3, None, 8, 9]
    assert all(stage.parameters["run"] == "demo" for stage in found)
    assert len({stage.made_from for stage in found}) == 4


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("01_a", "sise: 3", "unknown parameter 'sise' .did you mean 'size'"),
        ("01_a", "size: {x: 1}", "'size' holds nested values"),
        ("01_a", "size: 1e3", "read as text"),
        ("01_a", "size: 2020-01-01", "read as a date"),
        ("01_a", "size: [1", "params/demo/01_a.yaml is not valid YAML"),
        ("01_a", "- 1", "must hold lines of"),
        ("01_a", "run: other", "sets 'run'"),
        ("03_c", "size: 3", "no notebook '03_c'; there are: 01_a, 02_b"),
        ("00_x.T", "size: 3", "variant of 00_x.yaml, which is not there"),
    ],
)
def test_bad_parameters_are_refused_before_anything_runs(toy, capsys, name, text, message):
    params(toy, name, text)
    with pytest.raises(ValueError, match=message):
        stages("demo")
    assert reproduce.main(["demo"]) == 1
    assert not log(toy) and "Traceback" not in capsys.readouterr().err


def test_an_unknown_run_lists_the_runs(toy, capsys):
    assert reproduce.main(["dmeo"]) == 1
    assert "The runs there are: demo." in capsys.readouterr().err
    with pytest.raises(ValueError, match="letters, digits"):
        stages("../demo")


def test_a_run_resumes_and_reruns_what_changed(toy, capsys):
    assert reproduce.main(["demo"]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"\[(\d/4)\] (\S+) \.\.\. \d+ s", out) == [
        ("1/4", "01_a"), ("2/4", "02_b"), ("3/4", "02_b.T"), ("4/4", "02_b.Z")]
    assert "no metrics" in out and "report.html" in out
    here = str((toy / "notebooks").resolve())
    assert log(toy) == [["demo", n, here] for n in "3189"]
    assert [path.name for path in sorted((toy / "outputs/demo/notebooks").glob("*.ipynb"))] == [
        "01_a.ipynb", "02_b.T.ipynb", "02_b.Z.ipynb", "02_b.ipynb"]

    assert reproduce.main(["demo"]) == 0
    assert capsys.readouterr().out.count("reused") == 4 and len(log(toy)) == 4

    params(toy, "02_b.T", "size: 7")  # a parameter: only that variant
    assert reproduce.main(["demo"]) == 0
    assert log(toy)[4:] == [["demo", "7", here]]

    source = toy / "notebooks/01_a.ipynb"  # a code cell: everything after it too
    source.write_text(source.read_text().replace("print(size)", "print(size, 2)"))
    assert not any(stage.current for stage in stages("demo"))
    (toy / "outputs/demo/notebooks/02_b.ipynb").unlink()
    assert reproduce.main(["demo", "--list"]) == 0
    assert "current" not in capsys.readouterr().out


def test_prose_does_not_make_a_stage_stale(toy):
    before = stages("demo")
    source = toy / "notebooks/02_b.ipynb"
    source.write_text(source.read_text().replace("# Second", "# Two"))
    assert stages("demo") == before


def test_a_changed_helper_makes_what_imports_it_stale(toy):
    from helpers.stages import imports

    assert {path.name for path in imports("from helpers import paths, reproduce\nimport helpers.parameters")} == {
        "paths.py", "parameters.py"}
    assert imports("def f():\n    from helpers.artifacts import whole") == {paths.ROOT / "helpers/artifacts.py"}
    assert imports("import json, numpy\nfrom pathlib import Path") == set()


def test_a_failure_is_told_in_a_few_lines(toy, capsys):
    notebook(toy / "notebooks/03_c.ipynb", "def f():\n    raise KeyError('no such loss')", "f()")
    params(toy, "03_c", "")
    for name in ("01_a", "02_b", "02_b.T", "02_b.Z"):
        (toy / f"params/demo/{name}.yaml").unlink()
    assert reproduce.main(["demo"]) == 1
    out, err = capsys.readouterr()
    assert "03_c ... failed" in out
    assert err.startswith("03_c failed in cell [") and "KeyError: 'no such loss'" in err and "raise KeyError" in err
    assert "papermill" not in err and "\x1b" not in err and len(err.splitlines()) < 12
    folder = toy / "outputs/demo/notebooks"
    assert [path.name for path in folder.iterdir()] == ["03_c.failed.ipynb"]
    assert not (toy / "outputs/demo/report.html").exists()

    notebook(toy / "notebooks/03_c.ipynb", "print('mended')")
    assert reproduce.main(["demo"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["03_c.ipynb", "03_c.json"]


def test_ensure_runs_what_is_missing_from_inside_a_kernel_once(toy, capsys):
    made = toy / "outputs/demo/made.txt"
    first = toy / "notebooks/01_a.ipynb"
    first.write_text(first.read_text().replace("print(size)", f"open({str(made)!r}, 'w').close()"))
    patch = ("import pathlib\nfrom helpers import paths, reproduce\n"
             f"paths.NOTEBOOKS = pathlib.Path({str(first.parent)!r})\npaths.PARAMS = pathlib.Path({str(toy / 'params')!r})\nimport os; os.chdir('/')")
    call = f"reproduce.ensure(run, '01_a', {str(made)!r}); assert os.getcwd() == '/'"
    notebook(toy / "notebooks/02_b.ipynb", patch, call)
    for name in ("02_b.T", "02_b.Z"):
        (toy / f"params/demo/{name}.yaml").unlink()
    reproduce.execute(stages("demo")[1])
    assert made.exists() and len(log(toy)) == 1
    text = (toy / "outputs/demo/notebooks/02_b.ipynb").read_text()
    assert "01_a has not been run for 'demo': running it now" in text
    assert reproduce.main(["demo"]) == 0  # the same sidecars: nothing is executed again
    assert capsys.readouterr().out.count("reused") == 2 and len(log(toy)) == 1

    reproduce.ensure("demo", "01_a", made)  # there: nothing happens
    made.unlink()
    reproduce.ensure("demo", "01_a", made)  # deleted since: made again
    assert made.exists() and len(log(toy)) == 2


def test_ensure_says_what_it_cannot_do(toy):
    with pytest.raises(ValueError, match="copy params/demo to params/new"):
        reproduce.ensure("new", "01_a", toy / "x")
    with pytest.raises(ValueError, match="params/demo/ has no 02_b.Q.yaml; it has: 01_a, 02_b"):
        reproduce.ensure("demo", "02_b", toy / "x", variant="Q")
    with pytest.raises(ValueError, match="did not make"):
        reproduce.ensure("demo", "02_b", toy / "x", variant="T")
    assert {line[1] for line in log(toy)} == {"8"}


def executed(path, *cells):
    """A notebook of Markdown (str) and of code cells given by their outputs (list)."""
    make, made = nbformat.v4, []
    for cell in cells:
        made.append(make.new_markdown_cell(cell) if isinstance(cell, str)
                    else make.new_code_cell("print('code')", outputs=cell, execution_count=1))
    nbformat.write(make.new_notebook(cells=made), path)
    return path


def display(**data):
    return nbformat.v4.new_output("display_data", {k.replace("__", "/"): v for k, v in data.items()})


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report of two notebooks with every kind of output, some of it hostile."""
    import plotly.graph_objects as go

    tmp_path = tmp_path_factory.mktemp("page")

    figure = json.loads(go.Figure(go.Scatter(x=[1, 2], y=[1, 2], text=["</script>" + HOSTILE] * 2)).to_json())
    plot = nbformat.v4.new_output("display_data", {"application/vnd.plotly.v1+json": figure})
    stream = nbformat.v4.new_output("stream", text=HOSTILE)
    first = executed(
        tmp_path / "01_a.ipynb", "# The *first* one\n\n$x < 1$ and\n\n$$\\frac{a}{b}$$\n\n$\\nosuch{x}$", [stream],
        [display(text__plain=HOSTILE)], [display(text__markdown="**posts** " + HOSTILE)], [plot],
        [display(text__latex="$$z_i$$")], [display(**{"application__javascript": "alert(1)"})])
    second = executed(tmp_path / "01_a.T.ipynb", "# The *first* one\n\n## The first one", [plot])
    return report.build([first, second], tmp_path / "report.html", "A <title>", "<p>intro</p>").read_text()


def test_the_report_holds_everything_once(page):
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(page, "html.parser")
    ids = [element["id"] for element in soup.find_all(id=True)]
    assert len(ids) == len(set(ids))
    assert [(a["href"], a.get_text()) for a in soup.nav.find_all("a")] == [
        ("#01_a", "The first one"), ("#01_a-T", "The first one variant T")]
    assert {a["href"][1:] for a in soup.nav.find_all("a")} <= set(ids)
    assert soup.title.text == "A <title>" and "<p>intro</p>" in page
    assert not any(block.has_attr("open") for block in soup.find_all("details")) and soup.select("details.code pre")
    assert page.count("plotly.js v") == 1
    assert [place["data-figure"] for place in soup.select(".figure")] == ["0", "1"]
    assert len(json.loads(soup.find(id="figures").string)) == 2
    assert r"\nosuch{x}" in [tex.text for tex in soup.select("code.tex")]  # no converter knows it: shown, set apart


def test_formulas_are_mathml(page):
    pytest.importorskip("latex2mathml")
    assert "<mfrac>" in page and "$$" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert "\\" not in report.mathml(r"\arg\min_\theta \begin{aligned} a &= b \\ &= c \end{aligned}")


def test_hostile_text_is_escaped_and_no_script_but_ours_is_allowed(page):
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(page, "html.parser")
    assert HOSTILE not in page and page.count("&lt;script&gt;fetch") == 3  # stream, plain, Markdown
    scripts = soup.find_all("script")
    assert len(scripts) == 3 and scripts[0]["id"] == "figures"  # the data, plotly.js, and what draws
    policy = soup.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.count("'sha256-") == 2 and "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1] and "alert(1)" not in page


def test_the_report_asks_nothing_of_the_network(page):
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(page, "html.parser")
    assert not soup.find_all("link")
    for element in soup.find_all(lambda e: e.name != "a" and (e.has_attr("src") or e.has_attr("href"))):
        assert not re.match(r"\s*(https?:)?//", element.get("src") or element.get("href"))
    assert not re.search(r"@import|url\((?!['\"]?data:)", "".join(style.string for style in soup.find_all("style")))


def test_a_broken_notebook_leaves_no_report(tmp_path):
    (tmp_path / "bad.ipynb").write_text("{")
    for name in ("bad", "missing"):
        with pytest.raises(ValueError, match=name):
            report.build([tmp_path / f"{name}.ipynb"], tmp_path / "out.html", "t")
    assert not (tmp_path / "out.html").exists()


def test_the_results_are_aligned_and_the_best_is_first(toy):
    run = paths.Run("demo")
    assert results.text(run) == "no metrics"
    run.metrics.mkdir(parents=True)
    for name, row in {
        "a": {"model": "bow", "protocol": "ranking", "MRR": 0.1, "R@8": 0.5, "R@1": 0.25, "queries": 100},
        "b": {"model": "stream", "protocol": "ranking", "MRR": 0.75, "R@8": 1.0, "R@1": 0.5, "seed": 7},
        "c": {"model": "<b>", "protocol": "linking", "AUC": 0.5},
    }.items():
        (run.metrics / f"{name}.json").write_text(json.dumps(row))
    assert results.text(run).splitlines() == [
        "linking",
        "model    AUC",
        "-----  -----",
        "<b>    0.500",
        "",
        "ranking",
        "model     MRR    R@1    R@8  queries  seed",
        "------  -----  -----  -----  -------  ----",
        "stream  0.750  0.500  1.000              7",
        "bow     0.100  0.250  0.500      100",
    ]
    assert "&lt;b&gt;</td>" in results.html(run)


def test_results_of_earlier_models_and_data_are_left_out(toy):
    run = paths.Run("demo")
    for folder, made_from in ((run.models / "m", "new"), (run.models / "gone", None), (run.tokens / "test", "tokens")):
        folder.mkdir(parents=True)
        if made_from:
            name = "store.json" if folder.parent == run.tokens else "training.json"
            (folder / name).write_text(json.dumps({"made_from": made_from}))
    run.metrics.mkdir(parents=True)
    rows = {"m": ("new", "tokens"), "old": ("old", "tokens"), "baseline": (None, "tokens"), "older": (None, "before")}
    for name, (training, data) in rows.items():
        row = {"model": name, "protocol": "ranking", "MRR": 0.5, "data": data} | ({"training": training} if training else {})
        (run.metrics / f"{name}.json").write_text(json.dumps(row))
    told = results.text(run)
    assert "2 results of earlier models or data are left out" in told and "2 results of earlier" in results.html(run)
    assert [line.split()[0] for line in told.splitlines()[3:5]] == ["baseline", "m"]


def test_a_changed_input_file_makes_the_stages_stale(toy, monkeypatch):
    path = toy / "posts.csv"
    path.write_text("a")
    notebook(toy / "notebooks/01_a.ipynb", parameters=DECLARED + "\nlocation: list[str] = []  # files")
    monkeypatch.setattr(paths, "ROOT", toy)
    params(toy, "01_a", "location: [posts.csv]")
    before = [stage.made_from for stage in stages("demo")]
    assert before == [stage.made_from for stage in stages("demo")]
    path.write_text("ab")
    assert not set(before) & {stage.made_from for stage in stages("demo")}


def test_a_published_notebook_is_clean(toy, monkeypatch):
    monkeypatch.setattr(publish, "_check_pictures", lambda: None)
    monkeypatch.setattr(publish, "RENDERER", "plotly_mimetype")
    monkeypatch.setenv("PLOTLY_RENDERER", "")
    path = toy / "notebooks/01_a.ipynb"
    notebook(path, "import sys, os\nprint('warn', file=sys.stderr)", f"print({str(paths.ROOT / 'x')!r})", "",
             "os.path.join(os.path.expanduser('~'), 'y')")
    (toy / "notebooks/02_b.ipynb").unlink()
    publish.publish()
    book = nbformat.read(path, as_version=4)
    assert [cell.execution_count for cell in book.cells] == [1, 2, 3, None, 4]
    assert [[o.get("text") or o.data["text/plain"] for o in c.outputs] for c in book.cells] == [
        [], [], ["x\n"], [], ["'~/y'"]]
    assert book.metadata.kernelspec == publish.KERNELSPEC
    assert [dict(cell.metadata) for cell in book.cells] == [{"tags": ["parameters"]}, {}, {}, {}, {}]

    before = path.read_bytes()
    notebook(toy / "notebooks/00_bad.ipynb", "1 / 0")
    with pytest.raises(ValueError, match="00_bad failed and stays as it was: ZeroDivisionError"):
        publish.publish()
    assert path.read_bytes() == before and os.environ["PLOTLY_RENDERER"] == "plotly_mimetype"
