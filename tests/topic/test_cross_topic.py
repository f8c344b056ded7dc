"""Documents split by topic: made, reopened, masked, and retrieval among them recorded."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from helpers.core import results
from helpers.core.paths import Run
from helpers.encoders.baselines import fit_on_documents
from helpers.encoders.stream import StreamConfig
from helpers.losses import LossConfig
from helpers.splits.by_topic import TopicSplit
from helpers.tokens import tokenizer
from helpers.tokens.document_sets import DocumentConfig, make_documents
from helpers.tokens.samplers import AuthorSampler
from helpers.topic.cross_topic import (
    best_on_dev,
    chance_level,
    compare_systems,
    measure_retrieval,
    train_with_students,
)
from helpers.topic.probes import probe_encoder
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
    """One base and one student of three steps: recorded, compared, opened by name, probed."""
    training = {"steps": 3, "lr": 0.01, "eval_every": 3}
    bases = {"supcon": experiments_of(TINY, SAMPLER, "supcon", {}, training)}
    students = {"arr": experiments_of(TINY, SAMPLER, "arr", {}, training)}
    topic_bias = fit_on_documents("tfidf", corpus, 16)
    trained = train_with_students(bases, students, corpus, topic_bias, files.models / "arr")
    base, student = trained["supcon"], trained["supcon_arr"]
    assert student.experiment.teacher == student.experiment.start == base.fingerprint
    assert student.experiment.loss == LossConfig(name="arr")
    tests = {}
    for name, model in trained.items():
        about = {"model": name, "experiment": model.fingerprint}
        tests[name], costs = measure_retrieval(files, corpus, model.encoder, 16, **about)
        sizes = [corpus.stores[test].posts for test in tests[name]]
        assert costs["test_documents"] == np.mean(sizes) and costs["test_seconds"] > 0
    about = {"model": "supcon_arr", "base": "supcon", "experiment": student.fingerprint}
    sides = [tests["supcon_arr"]], [tests["supcon"]]
    added = compare_systems(files, corpus, *sides, **about)
    assert set(added.split) == {"test_cross", "test_in"} and (added.low <= added.value).all()
    frame = results.read_results(files)
    assert set(frame[frame.base == ""].model) == {"supcon", "supcon_arr"}
    rows = np.arange(0, corpus.stores["train"].posts, 2)[:200]
    assert probe_encoder(base.encoder, corpus, rows, 16).value.between(0, 1).all()


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
