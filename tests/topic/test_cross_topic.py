"""Documents split by topic: made, reopened, masked, and retrieval among them recorded."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from helpers.core import results
from helpers.core.paths import Run
from helpers.encoders.baselines import fit_on_documents
from helpers.encoders.stream import StreamConfig
from helpers.evaluation.ranking import evaluate_retrieval, retrieval_trials
from helpers.losses import LossConfig
from helpers.splits.by_topic import TopicSplit
from helpers.tokens import tokenizer
from helpers.tokens.document_sets import DocumentConfig, make_documents
from helpers.tokens.samplers import AuthorSampler
from helpers.topic.cross_topic import (
    DocumentSystem,
    best_on_dev,
    chance_level,
    compare_retrieved,
    retrieve_systems,
    train_with_students,
)
from helpers.topic.probes import probe_systems
from helpers.topic.remedies import mask_documents
from helpers.training.experiment import experiments_of
from tests.factories import HabitCounts, posts_table, styled_posts

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
    return make_documents(files, DocumentConfig(max_chars=0), RULE)


def test_masked_documents_are_cut_and_keep_authors_and_topics(corpus):
    masked = mask_documents(corpus, frozenset({"w00", "w01"}), 16)
    assert masked.tables["test_in"].equals(corpus.tables["test_in"])
    store = masked.stores["test_in"]
    parts = np.split(store.tokens, store.post_offsets[1:-1])
    texts = " ".join(corpus.tokenizer.decode(part) for part in parts)
    assert "*" in texts and "w05" not in texts and "w00" in texts
    assert corpus.texts("test_in").str.contains("w05").any()
    assert max(map(len, parts)) <= 16 and store.posts == corpus.stores["test_in"].posts


def test_chance_is_what_random_ranks_give(corpus):
    """Against 1,000 random orders of the targets."""
    chance = chance_level(corpus, "test_in")
    topics, authors = corpus.topics("test_in"), corpus.tables["test_in"].author.to_numpy()
    count = corpus.stores["test_in"].posts_per_author()
    targets, queries = (count - count // 2), count // 2
    rng, hits = np.random.default_rng(0), []
    owner = np.repeat(np.arange(len(count)), targets)
    for _ in range(1000):
        near = set(rng.choice(owner, 8, replace=False))
        hits.append(sum(queries[list(near)]) / queries.sum())
    assert chance["R@8 by chance"] == pytest.approx(np.mean(hits), abs=0.01)
    assert 0 < chance["targets on query's topic"] <= 1 and len(topics) == len(authors)


def test_bases_students_and_their_results(files, corpus):
    """One base and one student of three steps: named, recorded, compared, probed."""
    training = {"steps": 3, "lr": 0.01, "eval_every": 3}
    bases = {"supcon": experiments_of(TINY, SAMPLER, "supcon", {}, training)}
    students = {"arr": experiments_of(TINY, SAMPLER, "arr", {}, training)}
    topic_bias = fit_on_documents("tfidf", corpus, 16)
    given = (bases, students, corpus, topic_bias, files.models / "arr")
    systems = train_with_students(*given, name="minilm")
    base, student = systems
    assert student.trained.experiment.teacher == student.trained.experiment.start
    assert student.trained.experiment.teacher == base.trained.fingerprint
    assert student.trained.experiment.loss == LossConfig(name="arr") and student.teacher is base
    assert (student.model, student.label) == ("minilm-supcon_arr", "MiniLM SupCon + ARR")
    ranks, costs = retrieve_systems(files, systems, 16)
    sizes = [corpus.stores[test].posts for test in corpus.tests]
    assert costs.test_documents.tolist() == 2 * sizes and costs.test_seconds.min() > 0
    added = compare_retrieved(files, [(student, base)], ranks)
    assert set(added.split) == {"test_cross", "test_in"} and (added.low <= added.value).all()
    frame = results.read_results(files)
    trials = retrieval_trials(corpus.stores["test_in"])
    direct, _ = evaluate_retrieval(student.scorer, trials, 16, topics=corpus.topics("test_in"))
    recorded = frame.query("split == 'test_in' and base == ''").set_index(["model", "metric"])
    assert recorded.value["minilm-supcon_arr"].to_dict() == direct.value.to_dict()
    assert set(recorded.experiment) == {system.trained.fingerprint for system in systems}
    rows = np.arange(0, corpus.stores["train"].posts, 2)[:200]
    probes = probe_systems(files, systems, rows, 16).set_index(["model", "metric"]).value
    assert probes.between(0, 1).all() and len(probes) == 4
    probed = results.read_results(files).query("protocol.str.startswith('probe')")
    assert probed.set_index(["model", "metric"]).value.to_dict() == probes.to_dict()


def test_several_seeds_of_a_pair_are_averaged(files, corpus):
    """A system of two trainings minus another: the mean of the recalls, without a seed."""
    pairs = []
    ranks = {}
    for seed, right in enumerate((9.0, 1.0)):
        about = {"training": {"seed": seed}, "documents": corpus}
        student = DocumentSystem("", "student", "Student", None, **about)
        base = DocumentSystem("", "base", "Base", None, **about)
        ranks[student] = dict.fromkeys(corpus.tests, pd.Series([right, 9.0]))
        ranks[base] = dict.fromkeys(corpus.tests, pd.Series([9.0, 9.0]))
        pairs.append((student, base))
    gains = compare_retrieved(files, pairs, ranks)
    recalls = gains[gains.metric == "R@8_difference"]
    assert recalls.value.tolist() == [0.25, 0.25] and set(recalls.base) == {"Base"}
    recorded = results.read_results(files).query("model == 'student'")
    assert len(recorded) == 4 and recorded.seed.isna().all()


def test_the_best_on_dev_is_kept_and_one_alone_is_not_scored(corpus):
    ignorant = HabitCounts()
    ignorant.forward = lambda batch: torch.ones(len(batch), HabitCounts.dim)
    experiment = SimpleNamespace(sampler=SAMPLER)
    trainings = [
        SimpleNamespace(encoder=encoder, experiment=experiment)
        for encoder in (ignorant, HabitCounts(), HabitCounts())
    ]
    assert best_on_dev(trainings, corpus.stores["dev"]) is trainings[1]
    assert best_on_dev(trainings[:1], None) is trainings[0]
