"""The encoder that ships: vectors, eight bits, files, and the numbers of the notebooks."""

import shutil

import fitting
import numpy as np
import pytest
import torch

import helpers
from helpers.accounts import encoder as weights
from helpers.accounts.encoder import COUNTED, MAX_TOKENS, AuthorEncoder
from helpers.accounts.samples import halves
from helpers.accounts.scoring import ScoringConfig
from helpers.core.artifacts import read_json, write_json
from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.evaluation import matching
from helpers.evaluation.calibration import Calibration
from helpers.tokens.tokenizer import Tokenizer

POSTS = [["The first post here.", "And a second one, quite short :)"], ["another account's post"]]


def test_a_unit_vector_depends_on_its_own_posts_and_their_times():
    encoder = helpers.AuthorEncoder.load("open-small")
    vectors = encoder.encode(POSTS)
    assert vectors.shape[0] == 2 and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(vectors[1:], encoder.encode(POSTS[1:]), atol=1e-5)
    night, day = (
        encoder.encode(POSTS[1:], [[f"2024-05-05T{hour}:00:00Z"]]) for hour in ("03", "15")
    )
    assert np.abs(night - day).max() > 0.01


def test_products_of_vectors_are_fused_scores(encoder, mine):
    older, newer = halves(mine.store, 8)
    one, other = (encoder.vectors(side[np.arange(5)]) for side in (older, newer))
    model = encoder.model(False, False)
    scores = model.score_matrix(older[np.arange(5)], newer[np.arange(5)], MAX_TOKENS)
    np.testing.assert_allclose(one @ other.T, scores, atol=1e-5)


def test_no_address_and_no_name_is_left_in_the_vocabulary(encoder):
    pieces = [encoder.tokenizer.piece(token) for token in range(encoder.tokenizer.vocabulary)]
    with_at = {piece for piece in pieces if "@" in piece and any(map(str.isalnum, piece))}
    assert with_at <= {"@user", "@url", "@email", "@code", "@self"}
    first_names = "David Paul Mario Kevin Martin Steve Julian Thomas Peter Johannes Sebastien"
    assert not {piece.strip() for piece in pieces} & set(first_names.split())


def test_eight_bits_lose_at_most_half_a_step():
    tables = {
        "table": torch.randn(3000, 100) * torch.logspace(-6, 3, 3000)[:, None],
        "small": torch.randn(5),
        "zero": torch.zeros(3000, 100),
        "conv": torch.randn(600, 100, 5),
    }
    packed = weights.quantise(tables)
    again = weights.restore(packed)
    assert set(again) == set(tables)
    assert packed["table"].dtype == torch.int8 and packed["small"].dtype == torch.float32
    for name in ("table", "conv"):
        rows, back = tables[name].flatten(1), again[name].flatten(1)
        step = rows.abs().amax(1, keepdim=True) / 127
        assert ((rows - back).abs() <= 0.5001 * step).all()
    for name in ("zero", "small"):
        assert torch.equal(again[name], tables[name])


def test_a_ratio_claims_no_more_than_its_accounts_show():
    use = ScoringConfig([], Calibration([50.0], 0.0), accounts=9)
    scores = np.array([[-1.0, 0.0, 1.0]])
    np.testing.assert_allclose(use.llr(scores, 16, 16), [[-np.log(10), 0, np.log(10)]])
    # among 101 targets the odds are those of one of 100, and the ratio is 100 times as high
    in_gallery = use.llr(scores, 16, 16, targets=101)
    np.testing.assert_allclose(in_gallery, [[-np.log(10), np.log(100), np.log(1000)]])
    by_size = ScoringConfig([], Calibration([0.0, 1.0, 0.0, 0, 0], 0.0), accounts=10**9)
    small, large, larger = (by_size.llr(np.zeros(1), posts, 8) for posts in (16, 32, 64))
    assert small < large == larger


def test_what_an_earlier_version_saved_is_refused(tmp_path):
    copied = shutil.copytree(weights.SHIPPED / "open-small", tmp_path / "copied")
    about = read_json(copied / "model.json")
    about["uses"]["alone"]["match"] = None
    write_json(copied / "model.json", about)
    with pytest.raises(ValueError, match="earlier version"):
        AuthorEncoder.load(copied)


def test_saved_and_loaded_it_is_the_same(encoder, tmp_path):
    encoder.save(tmp_path / "again")
    again = AuthorEncoder.load(tmp_path / "again")
    # what was in eight bits stays in them
    np.testing.assert_array_equal(again.encode(POSTS), encoder.encode(POSTS))
    assert again.uses == encoder.uses


class Words(Tokenizer):
    """A tokenizer whose tokens are numbers."""

    vocabulary, fingerprint, kind, model = 300, "words", "numbers", b""

    def decode(self, ids):
        return " ".join(f"w{int(number)}" for number in ids)

    def piece(self, token):
        return "w"


def test_a_fit_of_own_stores_gives_all_uses(make_store, monkeypatch):
    monkeypatch.setattr(matching, "FIT_LISTS", {1.0: 1, 0.5: 1})
    monkeypatch.setattr(fitting, "SIDE_POSTS", (4, 16))
    train = make_store([40] * 60, 1, vocabulary=300, habits=True)
    dev = make_store([40] * 32, 2, vocabulary=300, habits=True)
    for store in (train, dev):
        store.meta.update(vocabulary=300, topics=[], fingerprint="")
    settings = stream_config(filters=4, token_dim=8, attention=8, layers=1, dim=16, features="T")
    made = fitting.fit_encoder(build_stream_encoder(settings, 300, 1).eval(), train, dev, Words())
    assert set(made.uses) == {"gallery", "gallery_hours", "alone", "alone_hours"}
    assert set(made.uses["gallery"].weights) - set(made.uses["alone"].weights) == set(COUNTED)
    assert made.uses["gallery"].accounts == 32
    assert made.uses["alone"].accounts == 9  # no ratio above 10 without a gallery
