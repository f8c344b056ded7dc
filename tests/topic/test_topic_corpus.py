"""A run's documents split by topic: made, reopened, masked, and retrieval among them recorded."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from helpers.core import results
from helpers.core.paths import Run
from helpers.encoders.stream import StreamConfig
from helpers.losses import LossConfig
from helpers.splits.by_topic import TopicSplit
from helpers.tokens import tokenizer
from helpers.tokens.document_sets import DocumentConfig
from helpers.tokens.samplers import AuthorSampler
from helpers.topic.cross_topic import (
    RetrievalTest,
    chance_level,
    compare_systems,
    compared_pairs,
    fit_topic_baseline,
    gains_over_base,
    mean_costs,
    measure_retrieval,
    open_trained,
)
from helpers.topic.distillation import train_with_students
from helpers.topic.probes import disjoint_samples, probe_encoder
from helpers.topic.topic_corpus import make_corpus, open_corpus
from helpers.training.experiment import experiments_of
from tests.factories import TopicShares, posts_table, styled_posts

RULE = TopicSplit(author_share=0.7, topic_share=0.5)
TINY = StreamConfig(features="T", filters=4, token_dim=4, attention=4, dim=8)
SAMPLER = AuthorSampler(
    authors_per_batch=8, samples_per_author=2, max_posts=1, overlap=False, max_tokens=16
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTHORBOOK_OUTPUTS", str(tmp_path_factory.mktemp("outputs")))
        files = Run("small")
        files.folder.mkdir()
        posts = posts_table(files.folder / "selected.parquet", styled_posts(), row_group_size=200)
        tokenizer.prepare_text(files.tokenizer, "bytes", 256, posts)
        yield files


@pytest.fixture(scope="module")
def corpus(files):
    return make_corpus(files, RULE, DocumentConfig(max_chars=0))


def test_rows_of_tables_are_posts_of_stores(corpus):
    assert corpus.kind == "cross_topic" and list(corpus.stores) == list(TopicSplit.splits)
    for part, store in corpus.stores.items():
        table = corpus.table(part)
        assert len(table) == store.posts == len(corpus.topics(part))
        assert corpus.tokenizer.decode(store.tokens[: store.post_offsets[1]]) == table.text[0]
    known = corpus.stores["train"].meta["topics"]
    assert set(corpus.topics("train")) == set(known) and not set(corpus.topics("test_cross")) & set(
        known
    )


def test_it_is_found_again_by_its_data(files, corpus):
    data = corpus.stores["test_in"].meta["fingerprint"]
    reopened = open_corpus(files, "cross_topic", data)
    assert (
        reopened.report == corpus.report
        and reopened.tokenizer.fingerprint == corpus.tokenizer.fingerprint
    )
    assert np.array_equal(reopened.stores["dev"].tokens, corpus.stores["dev"].tokens)
    with pytest.raises(ValueError, match="no documents of the split 'leak_aware'"):
        open_corpus(files, "leak_aware", data)


def test_posts_are_joined_within_a_topic(files):
    rule = RULE.model_copy(update={"kind": "leak_aware", "similarity": 1.0})
    joined = make_corpus(files, rule, DocumentConfig(max_chars=100, min_chars=60))
    assert joined.table("train").text.str.len().between(60, 100).all()


def test_raw_texts_are_refused_as_nothing_reads_them_here(files):
    with pytest.raises(ValueError, match="raw_texts are of verification"):
        make_corpus(files, RULE, DocumentConfig(raw_texts=True))


def test_masked_documents_are_cut_and_keep_authors_and_topics(corpus):
    masked = corpus.masked(frozenset({"w00", "w01"}), 16)
    before, after = corpus.table("test_in"), masked.table("test_in")
    assert before[["author", "topic"]].equals(after[["author", "topic"]])
    assert after.text.str.contains("*", regex=False).any()
    assert not after.text.str.contains("w05").any() and before.text.str.contains("w05").any()
    assert masked.kind == corpus.kind and masked.stores["dev"].posts == corpus.stores["dev"].posts


def test_chance_is_what_random_ranks_give(corpus):
    """Against 2,000 random orders of the targets."""
    chance = chance_level(corpus, "test_in")
    topics, authors = corpus.topics("test_in"), corpus.table("test_in").author.to_numpy()
    count = corpus.stores["test_in"].posts_per_author()
    targets, queries = (count - count // 2), count // 2
    rng, hits = np.random.default_rng(0), []
    owner = np.repeat(np.arange(len(count)), targets)
    for _ in range(2000):
        near = set(rng.choice(owner, 8, replace=False))
        hits.append(sum(queries[list(near)]) / queries.sum())
    assert chance["R@8 by chance"] == pytest.approx(np.mean(hits), abs=0.01)
    assert 0 < chance["targets on query's topic"] <= 1 and len(topics) == len(authors)


def test_bases_students_and_their_results(files, corpus):
    """One base and one student of three steps: recorded, compared, opened by name, probed."""
    training = {"steps": 3, "lr": 0.01, "eval_every": 3}
    bases = {"supcon": experiments_of(TINY, SAMPLER, "supcon", {}, training)}
    students = {"arr": experiments_of(TINY, SAMPLER, "arr", {}, training)}
    topic_bias = fit_topic_baseline("tfidf", corpus, TINY, 16)
    trained = train_with_students(bases, students, corpus, topic_bias, files.models / "arr")
    base, student = trained["supcon"], trained["supcon_arr"]
    assert student.experiment.teacher == student.experiment.start == base.fingerprint
    assert student.experiment.loss == LossConfig(name="arr")
    tests = {}
    for name, model in trained.items():
        about = {"model": name, "experiment": model.fingerprint}
        tests[name] = measure_retrieval(files, corpus, model.encoder, 16, **about)
        for part, test in tests[name].items():
            assert test.documents == corpus.stores[part].posts > len(test.ranks)
            assert test.seconds > 0
    about = {"model": "supcon_arr", "base": "supcon", "experiment": student.fingerprint}
    sides = [tests["supcon_arr"]], [tests["supcon"]]
    added = compare_systems(files, corpus, *sides, **about)
    assert set(added.split) == {"test_cross", "test_in"} and (added.low <= added.value).all()
    frame = results.read_results(files)
    assert set(frame[frame.base == ""].model) == {"supcon", "supcon_arr"}
    reopened, opened = open_trained(files, "cross_topic", ["supcon", "supcon_arr"])
    assert [model.fingerprint for model in opened.values()] == [
        base.fingerprint,
        student.fingerprint,
    ]
    with pytest.raises(ValueError, match="no model 'mll'.*it has: supcon, supcon_arr"):
        open_trained(files, "cross_topic", ["mll"])
    rows, _ = disjoint_samples(reopened.stores["train"].posts, 200)
    assert probe_encoder(opened["supcon"].encoder, reopened, rows, 16).value.between(0, 1).all()


def test_a_student_is_compared_with_its_base_and_arr_with_its_control():
    pairs = [("mll_arr", "mll"), ("mll_blind", "mll"), ("cl_arr", "cl"), ("cl_blind", "cl")]
    controls = [("mll_arr", "mll_blind"), ("cl_arr", "cl_blind")]
    assert compared_pairs(["mll", "cl"], ["arr", "blind"]) == pairs + controls
    assert compared_pairs(["mll"], ["arr"]) == [("mll_arr", "mll")]


def test_gains_are_those_of_arr_over_its_base():
    differences = pd.DataFrame(
        [
            ("supcon_arr", "supcon", "R@8_difference", 0.25),
            ("supcon_arr", "supcon", "MRR_difference", -0.5),
            ("supcon_blind", "supcon", "R@8_difference", 0.75),
            ("supcon_arr", "supcon_blind", "R@8_difference", 0.125),
        ],
        columns=["model", "base", "metric", "value"],
    ).assign(split="test_in", kind="cross_topic")
    gains = gains_over_base(differences)
    assert gains.index.tolist() == [("test_in", "supcon", "cross_topic")]
    assert gains.index.names == ["split", "base", "kind"]
    assert gains.iloc[0].to_dict() == {"R@8": 0.25, "MRR": -0.5}


def test_costs_are_means_over_kinds_tests_and_seeds():
    tests = {
        ("cross_topic", "supcon", 0): two_tests(1, 3),
        ("cross_topic", "supcon", 1): two_tests(2, 2),
        ("leak_aware", "supcon", 0): two_tests(5, 5),
        ("cross_topic", "tfidf", 0): two_tests(1, 2),
    }
    trained = {}
    for key, seconds in zip([*tests][:3], (10.0, 20.0, 60.0)):
        trained[key] = SimpleNamespace(summary={"seconds": seconds})
    costs = mean_costs(tests, trained)
    assert costs.index.tolist() == ["supcon", "tfidf"]
    assert costs.loc["supcon"].tolist() == [30, 3, 150]
    assert np.isnan(costs.seconds["tfidf"]) and costs.test_seconds["tfidf"] == 1.5


def two_tests(cross, seen):
    """The two tests of a system, of 100 and of 200 documents."""
    ranks = pd.Series([1.0])
    return {
        "test_cross": RetrievalTest(ranks, cross, 100),
        "test_in": RetrievalTest(ranks, seen, 200),
    }


def test_a_probe_of_topic_shares_knows_the_topic(corpus):
    rows, _ = disjoint_samples(corpus.stores["train"].posts, 300)
    known = probe_encoder(TopicShares(len(corpus.stores["train"].meta["topics"]) + 1), corpus, rows)
    assert known.value["topic_accuracy"] > 0.99 > known.value["topic_majority"]
    assert isinstance(known, pd.DataFrame) and list(known.columns) == ["value", "low", "high"]
