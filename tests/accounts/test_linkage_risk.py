"""The linkage risk is what the evaluation says of the same posts; its page says nothing else."""

import json
import re
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.accounts import linkage_changes, linkage_risk, linkage_risk_page, reading
from helpers.accounts.__main__ import main
from helpers.accounts.encoder import MAX_TOKENS
from helpers.accounts.linkage_risk import (
    BASELINE,
    CHANGE,
    CORPUS,
    GROWTH,
    OPEN,
    RISK,
    answers_alone,
    deal_posts,
    linked_queries,
    measure_risk,
)
from helpers.accounts.samples import in_memory, rooms_of, samples_of, texts_of
from helpers.core import paths
from helpers.evaluation import ranking
from helpers.evaluation.candidates import all_candidates
from helpers.evaluation.drawn_lists import ALONE, MATCHED, match_drawn_lists
from helpers.evaluation.lists import best_answers, list_metrics
from helpers.evaluation.matching import MAX_OVERLAP, sinkhorn
from helpers.evaluation.models import as_model, with_as_norm
from helpers.evaluation.trials import Trials

ENCODER = "open-small"


@pytest.fixture(scope="module")
def risk(mine, encoder):
    return measure_risk(mine, encoder, uncleaned=mine)


@pytest.fixture(scope="module")
def trials(mine, risk):
    """The first and the last posts of the same authors, as the evaluation takes them."""
    return ranking.ranking_trials(mine.store, risk.side_posts)


@pytest.fixture(scope="module")
def matrices(encoder, mine, trials):
    """Scores of the main answer, by models that the evaluation makes itself."""
    systems = {
        ENCODER: encoder.model(True, mine.hours),
        BASELINE: as_model(with_as_norm(encoder.encoders["tfidf_subword"])),
    }
    return {
        name: model.score_matrix(trials.queries, trials.targets, MAX_TOKENS)
        for name, model in systems.items()
    }


def table_of(risk, part, system, way, posts=None, condition=""):
    """One answer's value, low and high by metric."""
    rows = risk.metrics[(risk.metrics.part == part) & (risk.metrics.condition == condition)]
    rows = rows[(rows.system == system) & (rows.way == way)]
    if posts is not None:
        rows = rows[rows.known_posts == posts]
    assert rows.metric.is_unique
    return rows.set_index("metric")


def naive_at_precision(scores, precision):
    """The largest share of right answers above a threshold with so many right, one by one."""
    best = scores.max(1)
    right = (scores.argmax(1) == np.arange(len(scores))) & ((scores == best[:, None]).sum(1) == 1)
    shares = [0]
    for threshold in best:
        answered = best >= threshold
        if right[answered].mean() >= precision:
            shares.append(right[answered].sum() / len(scores))
    return max(shares)


def test_ranks_are_those_of_the_evaluation(risk, encoder, mine, trials):
    models = {
        ENCODER: encoder.model(True, mine.hours),
        BASELINE: with_as_norm(encoder.encoders["tfidf_subword"]),
    }
    for system, model in models.items():
        expected, _ = ranking.evaluate_ranking(model, trials, MAX_TOKENS)
        measured = table_of(risk, GROWTH, system, ALONE, risk.side_posts)
        columns = ["value", "low", "high"]
        for metric in ("MRR", "R@1"):
            assert np.allclose(measured.loc[metric, columns].astype(float), expected.loc[metric])
    assert len(trials.queries) == risk.main.authors


def test_ranks_of_fewer_posts_are_of_the_same_authors(risk, encoder, mine):
    few = ranking.ranking_trials(mine.store, 2, 2 * risk.side_posts)
    expected, _ = ranking.evaluate_ranking(encoder.model(True, mine.hours), few, MAX_TOKENS)
    measured = table_of(risk, GROWTH, ENCODER, ALONE, 2)
    assert np.isclose(measured.value["MRR"], expected.value["MRR"])
    growth = risk.highest[risk.highest.part == GROWTH]
    assert growth.authors.nunique() == 1
    sizes = [2**power for power in range(risk.side_posts.bit_length())]
    assert sorted(growth.known_posts)[: len(sizes)] == sizes


def test_links_at_a_precision_are_those_of_a_naive_loop(risk, encoder, mine, matrices):
    config = encoder.uses[encoder.use(True, mine.hours)].match
    values = []
    for system, scores in matrices.items():
        matching = sinkhorn(all_candidates(scores), config, MAX_OVERLAP)
        probability = matching.probability.reshape(scores.shape)
        for way, matrix in {ALONE: scores, MATCHED: probability}.items():
            measured = table_of(risk, GROWTH, system, way, risk.side_posts).value
            for metric, precision in (("A@P90", 0.9), ("A@P99", 0.99)):
                assert np.isclose(measured[metric], naive_at_precision(matrix, precision))
            values.append(measured[RISK])
    assert risk.main.value == max(values), "the risk is the highest of all answers"
    assert risk.main.linked == round(risk.main.value * risk.main.authors)


def test_half_of_the_known_authors_are_the_lists_of_the_evaluation(risk, encoder, mine, matrices):
    config = encoder.uses[encoder.use(True, mine.hours)].match
    for system, scores in matrices.items():
        lists = match_drawn_lists(
            scores, config, linkage_risk.KNOWN_SHARE, linkage_risk.OPEN_LISTS, seed=0
        )
        for way in (ALONE, MATCHED):
            expected = list_metrics(lists.answers[way], lists.accounts)
            measured = table_of(risk, OPEN, system, way)
            assert np.allclose(measured.value.astype(float), expected.value)


def test_each_change_is_compared_with_the_main_answer(risk):
    changes = risk.highest[risk.highest.part == CHANGE].set_index("condition")
    assert len(changes) == 5
    assert np.allclose(changes.difference, changes.value - risk.main.value)
    assert (changes.difference_low <= changes.difference).all()
    unchanged = changes.loc[linkage_risk.UNCLEANED]  # the fixture gives the cleaned posts again
    assert unchanged.difference == unchanged.difference_high == 0
    assert changes.loc[linkage_risk.FEW_RELEASED].released_posts == linkage_changes.FEW_POSTS
    texts = table_of(risk, CHANGE, BASELINE, ALONE, condition=linkage_risk.WITHOUT_HOURS)
    main_texts = table_of(risk, GROWTH, BASELINE, ALONE, risk.side_posts)
    assert texts.value.equals(main_texts.value), "TF-IDF reads no hours"


def test_groups_of_authors_add_up(risk, mine):
    corpus = risk.highest[risk.highest.part == CORPUS].iloc[0]
    groups = risk.by_author_posts
    assert groups.authors.sum() == corpus.authors == risk.counts["authors_measured"]
    assert groups.linked.sum() == corpus.linked == round(corpus.value * corpus.authors)
    posts = mine.store.posts_per_author()
    assert groups.authors[0] == ((posts >= 4) & (posts < 8)).sum()
    assert (groups.most_posts[:-1].to_numpy() == groups.least_posts[1:].to_numpy() - 1).all()


def test_of_many_authors_some_are_drawn(mine, encoder, monkeypatch):
    drawn = []

    def note(sides, *_):
        drawn.append(sides.known.authors)
        return {"x": np.eye(len(sides.known), dtype=np.float32)}, encoder.uses["gallery"].match

    monkeypatch.setattr(linkage_risk, "system_scores", note)
    risk = measure_risk(mine, encoder, max_authors=7, seed=3)
    assert risk.counts["authors_measured"] == 7
    assert risk.counts["authors_not_drawn"] == risk.counts["authors_with_posts"] - 7 > 0
    assert all(len(authors) == 7 for authors in drawn) and len(drawn) > 5
    assert not np.array_equal(drawn[0], np.arange(7))


GRID = st.integers(0, 4)  # so that many scores are equal


@given(st.integers(2, 7), st.data())
def test_answers_of_a_matrix_are_those_of_its_pairs(size, data):
    scores = np.array(data.draw(st.lists(GRID, min_size=size**2, max_size=size**2)), np.float32)
    scores = scores.reshape(size, size)
    partner = np.array(data.draw(st.permutations(range(-1, size - 1))))
    same = partner[:, None] == np.arange(size)
    pairs = all_candidates(scores)
    expected = best_answers(pairs, pairs.scores, same)
    measured = answers_alone(scores, partner)
    for name in ("target", "value", "rank", "partner", "right"):
        assert np.array_equal(
            getattr(measured, name), getattr(expected, name), equal_nan=name == "rank"
        )
    for precision, metric in ((0.9, "A@P90"), (0.99, "A@P99")):
        linked = linked_queries(measured, precision)
        if measured.has_partner.any():
            table = list_metrics(measured, np.arange(size), resamples=0)
            assert np.isclose(table.value[metric], linked.sum() / measured.has_partner.sum())


def test_long_lists_are_matched_by_their_nearest_pairs(matrices, encoder, mine, monkeypatch):
    config = encoder.uses[encoder.use(True, mine.hours)].match
    whole = linkage_risk.closed_answers(matrices, config)
    monkeypatch.setattr(linkage_risk, "MATCH_ALL", 3)
    monkeypatch.setattr(linkage_risk, "NEAREST", 15)
    near = linkage_risk.closed_answers(matrices, config)
    for key, answers in whole.items():
        assert (answers.right == near[key].right).mean() > 0.9
        if key[1] == ALONE:
            assert np.array_equal(answers.rank, near[key].rank), "ranks stay exact"


def test_posts_are_dealt_at_random(make_store):
    store = make_store([3, 40, 1, 25], seed=2)
    posts = reading.OwnPosts(store, np.array(list("abcd"), object), True, {}, paths.ROOT)
    dealt = deal_posts(posts, 1).store
    assert np.array_equal(dealt.author_offsets, store.author_offsets)
    assert not np.array_equal(dealt.time, store.time)
    for begin, end in zip(store.author_offsets, store.author_offsets[1:]):
        assert sorted(dealt.time[begin:end]) == sorted(store.time[begin:end])
    order = np.searchsorted(store.time, dealt.time)  # times grow from post to post
    assert np.array_equal(dealt.hour, store.hour[order])
    assert np.array_equal(np.diff(dealt.post_offsets), np.diff(store.post_offsets)[order])
    assert np.array_equal(deal_posts(posts, 1).store.time, dealt.time)
    assert not np.array_equal(deal_posts(posts, 2).store.time, dealt.time)


@pytest.mark.parametrize("pause", [0, 1, 86400, 10 * 86400])
def test_no_released_post_follows_within_the_pause(make_store, pause):
    store = make_store([5, 40, 3, 12, 4, 90], seed=5)
    known, released = linkage_risk.known_and_released(store, 2, 8, pause)
    expected = []
    for author, (begin, end) in enumerate(zip(store.author_offsets, store.author_offsets[1:])):
        size = min((end - begin) // 2, 8)
        if size < 2:
            continue
        first = list(range(begin, begin + size))
        last = [
            post
            for post in range(end - size, end)
            if store.time[post] >= store.time[first[-1]] + pause
        ]
        if len(last) >= 2:
            expected.append((author, first, last))
    sides = zip(known.authors, *map(posts_of, (known, released)), strict=True)
    assert list(sides) == expected and len(expected) > 2
    assert np.array_equal(known.authors, released.authors)


def posts_of(samples):
    return [list(range(first, first + count)) for first, count in zip(samples.first, samples.count)]


def test_with_a_pause_ranks_are_still_those_of_the_evaluation(encoder, mine, monkeypatch):
    """The first and the last posts of the authors who pause."""
    monkeypatch.setattr(linkage_risk, "SIDE_POSTS", (8,))
    monkeypatch.setattr(linkage_risk, "_changes", lambda *_: [])
    pause = 10 * 86400
    risk = measure_risk(mine, encoder, pause=pause)
    known, _ = linkage_risk.known_and_released(mine.store, 8, 16, pause)
    trials = ranking.ranking_trials(mine.store, 8)
    rows = np.flatnonzero(np.isin(trials.queries.authors, known.authors))
    assert 30 <= len(rows) == risk.main.authors < len(trials.queries)
    paused = Trials(trials.queries[rows], trials.targets[rows])
    expected, _ = ranking.evaluate_ranking(encoder.model(True, mine.hours), paused, MAX_TOKENS)
    measured = table_of(risk, GROWTH, ENCODER, ALONE, 8)
    assert np.isclose(measured.value["MRR"], expected.value["MRR"])


def test_authors_in_unknown_letters_are_counted(make_store):
    store = make_store([4, 4, 0, 4], lengths=[10] * 12)
    kinds = np.arange(2, 2**16 + 2)
    kinds[:4] = 0  # all tokens of the first author: token = post
    kinds[4:5] = 0  # a quarter of the second one's
    assert linkage_risk.readable_authors(store, kinds).tolist() == [False, False, True, True]
    kinds[4:5] = 2
    assert linkage_risk.readable_authors(store, kinds).tolist() == [False, True, True, True]


def test_changes_change_what_they_say(encoder):
    words = "this is fine and that is not so fine, is it? Call me in 2 days please".split()
    texts = [" ".join(words), "is is is is it it fine fine days Zanzibar"]
    samples = samples_of(
        [texts, ["is it fine"]], encoder.tokenizer, [[16e8, 17e8], [15e8]], [["a", "b"], ["a"]]
    )
    short = linkage_changes.with_changed_texts(
        samples, linkage_changes.first_words, encoder.tokenizer
    )
    changed = texts_of(short.store, np.arange(3), encoder.tokenizer)
    assert changed == [" ".join(words[:8]), "is is is is it it fine fine", "is it fine"]
    for name in ("hour", "time", "author_offsets"):
        assert np.array_equal(getattr(short.store, name), getattr(samples.store, name))
    assert rooms_of(short.store).tolist() == rooms_of(in_memory(samples).store).tolist()


def test_rare_words_are_those_of_the_released_posts(encoder, monkeypatch):
    monkeypatch.setattr(linkage_changes, "KEPT_WORDS", 2)
    known = samples_of([["tea is 42 my cup"]], encoder.tokenizer)
    released = samples_of([["is is is my my Tea"]], encoder.tokenizer)
    sides = linkage_changes.mask_rare_words(known, released, encoder.tokenizer)
    texts = [texts_of(side.store, np.arange(1), encoder.tokenizer)[0] for side in sides]
    assert texts == ["*** is ## my ***", "is is is my my ***"]


def test_uncleaned_posts_keep_what_cleaning_removes_and_leave_no_file(
    encoder, tmp_path, monkeypatch
):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))
    rows = []
    for author in ("Ann Lee", "Bob Ray", "Cy"):
        for number in range(6):
            text = (
                f"Write to me: {author.split()[0]}{number}@example.org, said {author}, day {number}"
            )
            rows.append((author, f"2020-01-{number + 1:02d}", text))
    frame = pd.DataFrame(rows, columns=["author", "time", "text"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    run = paths.Run("x")
    names = np.array([reading.pseudonym_of(name) for name in ("Cy", "Bob Ray")], object)
    posts = linkage_changes.read_uncleaned_posts(run, str(tmp_path / "a.csv"), encoder, names)
    texts = " ".join(texts_of(posts.store, np.arange(posts.store.posts), encoder.tokenizer))
    assert "Bob3@example.org" in texts and "Ray" in texts and "Ann" not in texts
    left = [path for path in (tmp_path / "outputs").rglob("*") if path.is_file()]
    assert all(
        path.name.startswith(".lock") or b"example" not in path.read_bytes() for path in left
    )
    assert not [path for path in left if path.suffix in (".parquet", ".u16")]
    first, last = linkage_changes.same_authors(posts, names, 3)
    assert posts.names[first.authors].tolist() == names.tolist()
    assert (posts.store.time[first.first + 2] < posts.store.time[last.first]).all()
    assert linkage_changes.same_authors(posts, np.array(["u0"], object), 3) is None
    assert linkage_changes.same_authors(posts, names, 4) is None


HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The page, risk.json and risk.csv of a file of hostile names and posts, without times."""
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("hostile")
    patch.setenv("AUTHORBOOK_OUTPUTS", str(folder / "outputs"))
    rng = np.random.default_rng(0)
    words = np.array("the a tea coffee maybe never always ok well then so but green red".split())
    rows = []
    for author in range(34):
        share = rng.dirichlet(np.full(len(words), 0.5))
        for _ in range(8):
            rows.append((f"{HOSTILE}{author}", " ".join(rng.choice(words, 14, p=share)) + HOSTILE))
    rows += [("few & <b>", "a post that nobody else wrote, and the only one")] * 2
    path = folder / "<img src=x onerror=alert(3)> & $main_sentence.csv"
    columns = ["author</table><b>", "text"]
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
    options = ["--split", "half", "--seed", "4", "--author", columns[0]]
    assert main(["linkage-risk", str(path), *options]) == 0
    patch.undo()
    return SimpleNamespace(folder=folder / "outputs" / "linkage-risk", path=path)


def test_a_page_of_hostile_text_is_harmless(hostile):
    page = (hostile.folder / "linkage_risk.html").read_text("utf-8")
    tags = set(re.findall(r"<\s*([a-zA-Z]+)", page))
    assert not tags & {"script", "img", "b", "a", "iframe", "link"}, tags
    assert unescape(re.search("<title>(.*?)</title>", page)[1]).endswith(hostile.path.name)
    assert "default-src 'none'" in page and not re.search(r"\bon\w+=[^ ]*\"|https?:|url\(", page)
    for name in ("linkage_risk.html", "risk.json", "risk.csv"):
        assert (hostile.folder / name).stat().st_mode & 0o777 == 0o600


def numbers_of(value):
    """Every number in a JSON value, as a page may write it."""
    if isinstance(value, dict):
        return set().union(*map(numbers_of, value.values()))
    if isinstance(value, list):
        return set().union(*map(numbers_of, value))
    if isinstance(value, str):
        return set(re.findall(r"\d+", value))
    if isinstance(value, bool) or value is None:
        return set()
    size = abs(value)
    forms = {f"{size}", f"{size:.3f}", f"{100 * size:.0f}", f"{100 * size:.1f}"}
    if isinstance(value, int):
        forms = {f"{size}"}
    return forms


def visible_text(page):
    page = re.sub(r"<style>.*?</style>|<title>.*?</title>", " ", page, flags=re.S)
    return unescape(re.sub(r"<[^>]*>", " ", page))


def test_every_number_of_the_page_is_in_the_json(hostile):
    page = (hostile.folder / "linkage_risk.html").read_text("utf-8")
    facts = json.loads((hostile.folder / "risk.json").read_text("utf-8"))
    shown = {
        number.replace(",", "") for number in re.findall(r"\d[\d,.]*\d|\d", visible_text(page))
    }
    assert len(shown) > 20
    assert shown <= numbers_of(facts)
    frame = pd.read_csv(hostile.folder / "risk.csv", keep_default_na=False)
    assert list(frame.columns) == linkage_risk.COLUMNS


def test_the_sentences_say_the_numbers(hostile):
    facts = json.loads((hostile.folder / "risk.json").read_text("utf-8"))
    first, second = linkage_risk_page.risk_sentences(facts)
    answer = facts["answer"]
    assert 30 <= answer["authors"] <= 34  # some wrote posts that are nearly copies
    assert first.startswith(f"Of {answer['authors']} authors with 2 posts or more in each half")
    assert f" {answer['linked']} (" in first
    assert "other posts of each" in first and "one half" in second
    counts = facts["counts"]
    assert counts["authors"] == 35 and counts["authors_with_few_posts"] == 1
    left_out = [counts[reason] for reason in linkage_risk_page.LEFT_OUT]
    assert counts["authors"] == sum(left_out) + counts["authors_measured"]


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path / "outputs"))


def write_posts_of(path, authors, posts, text):
    rows = []
    for author in range(authors):
        for post in range(posts):
            rows.append((f"p{author}", text.format(author=author, post=post)))
    pd.DataFrame(rows, columns=["author", "text"]).to_csv(path, index=False)


def test_bad_input_gets_a_sentence(tmp_path, outputs, capsys):
    path = tmp_path / "a.csv"
    words = "word{author}x{post} and so on, {post} times of {author}, as one says here and there"
    write_posts_of(path, 12, 4, words)
    assert main(["linkage-risk", str(path)]) == 1
    assert "--split time needs the times of posts" in capsys.readouterr().err
    assert main(["linkage-risk", str(path), "--split", "half", "--max-authors", "1"]) == 1
    assert "--max-authors 1: a number from 30 on" in capsys.readouterr().err
    assert not list(tmp_path.rglob("risk.json"))


def test_too_few_authors_are_an_error(tmp_path, outputs, capsys):
    rng = np.random.default_rng(1)
    rows = []
    for author in range(12):
        for _ in range(5):
            rows.append((f"p{author}", " ".join(map(str, rng.permutation(list("abcdefghijkl"))))))
    path = tmp_path / "a.csv"
    pd.DataFrame(rows, columns=["author", "text"]).to_csv(path, index=False)
    assert main(["linkage-risk", str(path), "--split", "half"]) == 1
    assert "a share of fewer than 30 authors would say little" in capsys.readouterr().err


def test_posts_that_all_stand_on_both_sides_are_an_error(tmp_path, outputs, capsys):
    path = tmp_path / "a.csv"
    form = "We all write this sentence, word for word, in each of our posts without an end: {post}!"
    write_posts_of(path, 31, 6, form)
    assert main(["linkage-risk", str(path), "--split", "half"]) == 1
    message = capsys.readouterr().err
    assert "word for word in several posts" in message or "nothing can be compared" in message
