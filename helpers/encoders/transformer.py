"""Any pretrained transformer as an encoder of posts (tyo2021 section 2, Figure 1).

A post in other tokens than the model's own is read as text and cut into those.
"""

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from helpers.encoders import pretrained
from helpers.tokens import pretrained_tokenizers
from helpers.tokens.batch import PAD
from helpers.tokens.tokenizer import Tokenizer

TINY = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
}
BUCKET = {
    "cpu": 2**13,
    "cuda": 2**17,
}  # tokens, padding included, that pass through the transformer at once


class Transformer(nn.Module):
    """The first ``max_tokens`` tokens of a post through a transformer, mean of the last layer over the real ones.

    ``every_layer``: the means of the embeddings and of all layers, one after the other. Lower ones tell style.

    Texts pass in buckets of similar length, so that short ones do not pay for long ones; no vector depends on that.

    vocabulary : kinds of tokens of the store. tokenizer : of the store, where its tokens are not the model's own.
    settings : a :class:`~helpers.encoders.stream.StreamConfig`, of which are read:
    model : as of :mod:`helpers.tokens.pretrained_tokenizers` (paper: bert-base-cased), or "tiny": two layers with random weights
    for the tokens of any tokenizer.
    max_tokens : those that the model puts around a text among them; ``room`` is what is left for the text itself.
    precision : "bf16" for the transformer, "no" for float32. depth : of its layers the first so many, 0 for all.
    frozen : so many of these, and the tokens' embeddings, are not trained; 0 trains all. dropout : in all of them.
    Raises ValueError for a model that is not there, a text or depth beyond its own, or a store of more kinds of tokens
    than it knows.
    """

    def __init__(self, vocabulary: int, settings, tokenizer: Tokenizer | None = None):
        from transformers import AutoTokenizer, BertConfig, BertModel

        super().__init__()
        model, max_tokens, depth, frozen = (
            settings.model,
            settings.max_tokens,
            settings.depth,
            settings.frozen,
        )
        if model == "tiny":
            body = BertModel(BertConfig(vocab_size=vocabulary, **TINY), add_pooling_layer=False)
            self.before, self.after = [], []
        else:
            body, _ = pretrained.model_parts(model)
            self.before, self.after = pretrained_tokenizers.special_tokens(model)
            if hasattr(body, "pooler"):
                body.pooler = None  # reads the first token only; nothing here does
        foreign = (
            tokenizer
            and model != "tiny"
            and tokenizer.model != pretrained_tokenizers.tokenizer_file(model)
        )
        self.others, self.own = (
            (tokenizer, pretrained_tokenizers.read_pretrained(model, AutoTokenizer))
            if foreign
            else (None, None)
        )
        if self.own is None and vocabulary > body.config.vocab_size:
            raise ValueError(f"the store holds {vocabulary} kinds of tokens, {model} knows "
                             f"{body.config.vocab_size}: its tokenizer must be this model's")  # fmt: skip
        layers = next(each for each in body.modules() if isinstance(each, nn.ModuleList))
        if max(depth, frozen) > len(layers):
            raise ValueError(f"{model} has {len(layers)} layers, not {max(depth, frozen)}")
        del layers[depth or len(layers) :]
        for module in body.modules():
            if isinstance(module, nn.Dropout):
                module.p = settings.dropout
        if not torch.cuda.is_available():
            body.set_attn_implementation(
                "eager"
            )  # on a CPU the fused kernel's backward pass takes twice the step
        if frozen:
            body.requires_grad_(False)
            layers[frozen:].requires_grad_(True)
        # RoBERTa numbers its positions from behind the padding token's id
        limit = body.config.max_position_embeddings - (
            2 if "roberta" in body.config.model_type else 0
        )
        if max_tokens > limit:
            raise ValueError(f"{model} reads at most {limit} tokens, not {max_tokens}")
        self.body, self.precision, self.every_layer = body, settings.precision, settings.every_layer
        self.dim = body.config.hidden_size * (len(layers) + 1 if self.every_layer else 1)
        self.room = max_tokens - len(self.before) - len(self.after)

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens (N, L), PAD at the end -> (N, dim) float32; zero for a post without any token."""
        tokens, real = self._framed(tokens)
        count = real.sum(1)
        order = count.argsort(stable=True)
        pooled = [self._pool(tokens[rows], real[rows]) for rows in self._buckets(order, count)]
        return torch.cat(pooled)[order.argsort()]

    def _framed(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(N, longest) tokens with the model's own around them, 0 behind their end, and which are real."""
        text = (self._as_own(tokens) if self.own else tokens)[:, : self.room]
        there = text != PAD
        count = there.sum(1)
        size = count + len(self.before) + len(self.after)
        framed = tokens.new_zeros(len(tokens), max(int(size.max()), 1))
        framed[:, : len(self.before)] = tokens.new_tensor(self.before)
        row, column = there.nonzero(as_tuple=True)
        framed[row, len(self.before) + column] = text[row, column]
        for number, token in enumerate(self.after):
            framed[torch.arange(len(framed)), len(self.before) + count + number] = token
        return framed, torch.arange(framed.shape[1], device=framed.device) < size[:, None]

    def _as_own(self, tokens: Tensor) -> Tensor:
        """(N, L) tokens of the store -> (N, longest) of the model."""
        texts = [self.others.decode(row[row != PAD]) for row in tokens.cpu().numpy()]
        ids = self.own(texts, add_special_tokens=False, truncation=True, max_length=self.room)[
            "input_ids"
        ]
        rows = [torch.tensor(row, dtype=torch.long) for row in ids]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD).to(
            tokens.device
        )

    def _buckets(self, order: Tensor, count: Tensor) -> list[Tensor]:
        """Rows in the given order (the shortest first), cut where rows x longest would exceed the BUCKET."""
        limit, lengths = BUCKET[order.device.type], count[order].tolist()
        cuts, begin = [0], 0
        for end, length in enumerate(lengths):
            if end > begin and (end + 1 - begin) * length > limit:
                cuts.append(begin := end)
        return [order[a:b] for a, b in zip(cuts, [*cuts[1:], len(lengths)])]

    def _pool(self, tokens: Tensor, real: Tensor) -> Tensor:
        """(n, dim): mean of the last layer over the real tokens; zero where there are none."""
        width = max(int(real.sum(1).max()), 1)
        tokens, real = tokens[:, :width], real[:, :width]
        seen = real.clone()
        seen[:, 0] = True  # attention to nothing at all is not a number
        low = self.precision == "bf16"  # "no" must not switch off what training has switched on
        with torch.autocast(tokens.device.type, torch.bfloat16) if low else nullcontext():
            read = self.body(
                input_ids=tokens, attention_mask=seen.long(), output_hidden_states=self.every_layer
            )
        means = [
            (states.float() * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)
            for states in (read.hidden_states if self.every_layer else [read.last_hidden_state])
        ]
        return torch.cat(means, 1)
