"""What is read of a pretrained model: a tiny BERT with random weights, and MiniLM where it is
installed.
"""

import pytest

from helpers.tokens import tokenizer as tokenizers
from helpers.tokens.tokenizer import HuggingFace, load_tokenizer, prepare_text

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *"abcdt",
    "##s",
    "cat",
    "the",
    "sat",
    "mat",
    "and",
]
TEXTS = ["a cat sat", "a b zzz", "The cats and the mat", "", "the " * 1200]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    BertModel(
        BertConfig(
            vocab_size=len(WORDS),
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            intermediate_size=8,
            max_position_embeddings=40,
        )
    ).save_pretrained(folder)
    return str(folder)


def test_its_tokenizer_without_what_it_puts_around_a_text(folder, tmp_path):
    from transformers import AutoTokenizer

    prepare_text(tmp_path / "tokenizer", "huggingface", 0, "", model=folder)
    tokenizer, reference = (
        load_tokenizer(tmp_path / "tokenizer"),
        AutoTokenizer.from_pretrained(folder),
    )
    assert isinstance(tokenizer, HuggingFace) and tokenizer.vocabulary == len(WORDS)
    for text, ids in zip(TEXTS, tokenizer.encode(TEXTS)):
        assert ids.tolist() == reference(text, add_special_tokens=False)["input_ids"]
    assert (
        tokenizer.decode([WORDS.index("the"), WORDS.index("cat"), WORDS.index("##s")]) == "the cats"
    )


def test_other_weights_than_those_of_minilm_are_refused(monkeypatch):
    pytest.importorskip(tokenizers.MINILM_PACKAGE)
    assert tokenizers.locate_model("minilm")
    monkeypatch.setattr(tokenizers, "MINILM_WEIGHTS", "0" * 16)
    with pytest.raises(ValueError, match="not those of all-MiniLM-L6-v2"):
        tokenizers.locate_model("minilm")
