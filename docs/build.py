"""Fill README.md, docs/*.md and the cards from stored results: ``python docs/build.py``.

A page holds comments of five kinds, which Markdown does not show. ``tests/test_docs.py`` fails
where a page is not as this module would write it, where a name is unknown, and where a comparison
does not hold.

**1. A table** stands between ``<!-- table`` and ``<!-- end -->``; what follows "table" is YAML, on
one line or on many::

    <!-- table
    draw: 5
    protocol: ranking
    split: test
    max_tokens: 128
    allow_missing: true
    rows: [Fusion T, LSA-WCCN]
    columns:
    - seeds
    - MRR
    - {metric: R@8, value_only: true}
    - {metric: MRR, base: "TF-IDF subword, s-norm"}
    -->
    <!-- end -->

What is chosen. Each of these may stand in the block, in a row or in a column; a column goes before
a row, and a row before the block.

================  =================================================================================
draw, file        ``outputs/open/draw-<n>/results.csv``, or the path of another table of results
protocol, split   as stored: ranking, "ranking within communities", linking; test, seen, blogs
metric            as stored: MRR, R@8, hardest_AUC; ``helpers.core.names`` makes the header
system            a name of ``helpers.core.names``; in a column it stands for another system's value
base              the system that is subtracted: the paired difference of the first seed
max_tokens        tokens read of each post (32); rows that do not say it are always taken
seed              this seed alone; otherwise all seeds are one value
training_authors  rows of so many training authors
model             a pattern for the identifier, where one name has several rows: "* 8"
================  =================================================================================

How it is shown, in the block:

================  =================================================================================
columns           a list of metrics, "seeds" (how many), "accounts" (how many queries), and dicts
rows              a list of names, or of dicts of ``system``, ``name`` (what the first column says)
                  and changes; otherwise all systems that the first metric was measured of
first             the header of the first column ("system"), at most three words
order             "value", the best of the first metric first, or "given", as in ``rows``
allow_missing     true: "–" where nothing was measured, and a caption says why; otherwise an error
================  =================================================================================

Only in a column:

================  =================================================================================
header            in place of the name of the metric with what the column chooses otherwise
value_only        true: the number without its standard deviation or interval
ratio_to          the name of a row: how many times its value, two digits
mean              true: the mean of the row's values that are neither differences nor ratios; with
                  ``ratio_to`` how many times that row's mean
count             "seeds" or "accounts", as in the list of columns, with another ``header``
================  =================================================================================

A cell is ``0.813 ± 0.004`` (mean and standard deviation over seeds), ``0.721 (0.690 to 0.751)``
(one seed, 95% interval) or ``+0.068 (0.043 to 0.094)`` (a difference). It is an error where a
stored difference is not that of the rows it was made of.

Two tables have one option alone. ``verdicts: [5, 4, 3]``: the comparisons with the papers that
these draws measured, under each protocol from the first draw that has it. ``glossary: true``: every
term.

**2. Values**, at the top of a page: one name a line, with what is chosen as in a table, and YAML's
own anchors (a name that begins with "_" is only there to be merged)::

    <!-- values
    include: docs/results.yaml
    _d5: &d5 {draw: 5, protocol: ranking, split: test, max_tokens: 128, metric: MRR}
    lead: {<<: *d5, system: Fusion T, base: LSA-WCCN}
    mrr: {<<: *d5, systems: {fusion: Fusion T, lsa: LSA-WCCN}}
    counting: {<<: *d5, systems: ["TF-IDF*", "LSA-WCCN*"]}
    stream: {<<: *d5, system: Stream T, settings: {new: {draw: 5}, old: {draw: 4}}}
    best: {<<: *d5, systems: ["TF-IDF*"], settings: {new: {draw: 5}, old: {draw: 4}}, pick: max}
    posts: {json: outputs/open/data_card.json, key: posts}
    paper: {published: khan2021_table2, row: "model == 'TP_16'", metric: EER}
    papers: {verdicts: [5, 4, 3]}
    -->

* ``include`` takes in the values of a file.
* ``systems`` makes a group: ``mrr.fusion`` and ``mrr.lsa`` are values, ``mrr`` is both of them. The
  names of a list are sorted and may be patterns.
* ``settings`` makes a group of one system in several settings, ``stream.new`` and ``stream.old``,
  or with ``systems`` and ``pick`` (min or max) of the lowest or highest system in each.
* ``published`` is the mean of the rows that a pandas query finds in a published table.
* ``verdicts`` counts comparisons: ``papers``, of them ``papers.published`` (as published),
  ``papers.none`` (no difference where the paper has one), ``papers.open`` (not distinguishable, or
  no interval) and ``papers.other`` (the other way, or a difference that is published as none).

**3. A number in a sentence**: ``<!-- = lead -->+0.068 (0.043 to 0.094)<!-- / -->``. Behind "=" is a
value, which is shown as in a table, or an expression (``+ - * / **``, comparisons, ``and or not``,
``abs all any count log max mean min``), perhaps with a format: ``mrr.fusion / mrr.lsa:.2f``,
``lead.value:+.2f``, ``share:.0%``. In an expression a name is its number. Its fields are ``value``,
``low`` and ``high`` (the interval of the first seed), ``first`` (the value of the first seed),
``sd``, ``seeds`` and ``queries``. No line begins with such a comment, since Markdown would take it
for HTML. Numbers that no table holds stand between ``<!-- typed: why -->`` and
``<!-- end typed -->``.

**4. A comparison in words**: ``<!-- holds: lead.low > 0 and all(mrr.fusion > counting) -->``,
behind the sentence that states it.

**5. Links** that open notebooks on Binder and Colab, between ``<!-- online -->`` and
``<!-- /online -->``: none until CITATION.cff has a line
``repository-code: https://github.com/<owner>/<name>``.
"""

import re
import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent))  # the modules beside this one, whoever loads it
import page_tables  # noqa: E402
import page_values  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "helpers/accounts/shipped").glob("*/README.md")),
]
ONLINE = re.compile(r"(<!-- online -->\n).*?(?=<!-- /online -->)", re.S)
OPENED = ["00_start_here", "07_visualize", "13_your_accounts"]
BLOCK = re.compile(r"(<!-- table\n(.*?)-->\n).*?(?=<!-- end -->)", re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)


def online(address: str) -> str:
    """Return the lines with the links to Binder and Colab, none without an ``address``."""
    if not address:
        return ""
    place = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?", address)
    if not place:
        message = f"repository-code in CITATION.cff is {address!r}"
        raise ValueError(f"{message}: not https://github.com/<owner>/<name>")
    binder = _links("https://mybinder.org/v2/gh/{}/main?labpath=notebooks%2F{}.ipynb", place[1])
    colab_address = "https://colab.research.google.com/github/{}/blob/main/notebooks/{}.ipynb"
    colab = _links(colab_address, place[1])
    setup = (
        f"!git clone -q https://github.com/{place[1]} authorbook && cd authorbook"
        " && pip install -q -c constraints.txt -e '.[notebooks]'"
    )
    return (
        f"Without installing anything: notebooks {binder} on Binder; a first start takes minutes.\n"
        f"On Colab: {colab}; run `{setup}` in a cell of its own,\n"
        "restart the session, then run the notebook.\n"
    )


def _links(address: str, repository: str) -> str:
    return ", ".join(f"[{name[:2]}]({address.format(repository, name)})" for name in OPENED)


def filled(text: str) -> str:
    """Return a page with tables and numbers as the results say, and links as CITATION.cff does."""
    address = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8")).get("repository-code", "")
    links = online(address)
    text = ONLINE.sub(lambda block: block[1] + links, text)
    text = BLOCK.sub(_filled_table, text)
    return page_values.filled(text)


def _filled_table(block: re.Match) -> str:
    return block[1] + page_tables.lines(yaml.safe_load(block[2]))


def visible(text: str) -> str:
    """Return a page without its comments, as a reader sees it."""
    return COMMENT.sub("", text)


def main() -> int:
    """Fill all pages; return 1 where a statement of one does not hold."""
    false_statements = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        try:
            now = filled(text)
            for statement in page_values.false_statements(now):
                false_statements.append(f"{page.name}: {statement}")
        except ValueError as error:
            raise ValueError(f"{page.relative_to(ROOT)}: {error}") from None
        if now != text:
            page.write_text(now, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: filled", file=sys.stderr)
    for line in false_statements:
        print(f"does not hold: {line}", file=sys.stderr)
    return int(bool(false_statements))


if __name__ == "__main__":
    sys.exit(main())
