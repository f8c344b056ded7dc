"""DocumentEncoder: any pretrained transformer as an encoder of documents (tyo2021 section 2, Figure 1).

A document is a stream of length one; of a longer stream the posts are read one after the other, as one text. The
tokens come from the token store, so its tokenizer must be the model's own ("huggingface" in notebook 02).
"""

from contextlib import nullcontext

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from helpers.tokens import pretrained
from helpers.tokens.batch import Batch
from helpers.tokens.batch import PAD

TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
BUCKET = {"cpu": 2**13, "cuda": 2**17}  # tokens, padding included, that pass through the transformer at once


class DocumentEncoder(nn.Module):
    """The first ``longest`` tokens through a transformer, mean over the real ones, a dense layer, unit length.

    vocabulary: of the token store. topics: not read. model: as of :mod:`helpers.tokens.pretrained` (paper: bert-base-cased),
    or "tiny": two layers with random weights for the tokens of any tokenizer.
    embedding: of the dense layer (paper: 256), 0 for none: the mean itself, as sentence encoders are made
    (sawatphol2022). activation: "relu" after the dense layer as tyo2021 released it, or "none".
    longest: tokens, those that the model puts around a text among them. unit: False for vectors as they are, which the
    margins above 2 of tyo2021 Table 2 are for. precision: "bf16" for the transformer, "no" for float32.
    Texts pass through the transformer in buckets of similar length, so that short ones do not pay for long ones; an
    embedding does not depend on its bucket.
    Raises ValueError for a model that is not there, a text longer than it can read, or a store of more kinds of tokens
    than it knows; whether they are the same tokens is for the caller to see to.
    """

    def __init__(
        self,
        vocabulary: int,
        topics: int = 0,
        model: str = "minilm",
        embedding: int = 256,
        activation: str = "relu",
        longest: int = 512,
        unit: bool = True,
        precision: str = "no",
    ):
        from transformers import AutoModel, BertConfig, BertModel

        super().__init__()
        for name, value, valid in (("activation", activation, ("relu", "none")),
                                   ("precision", precision, ("no", "bf16"))):  # fmt: skip
            if value not in valid:
                raise ValueError(f"{name} {value!r}: one of {', '.join(valid)}")
        if model == "tiny":
            body = BertModel(BertConfig(vocab_size=vocabulary, **TINY), add_pooling_layer=False)
            self.before, self.after = [], []
        else:
            body = pretrained.read(model, AutoModel)
            self.before, self.after = pretrained.special_tokens(model)
            if hasattr(body, "pooler"):
                body.pooler = None  # reads the first token only; nothing here does
            if vocabulary > body.config.vocab_size:
                raise ValueError(f"the store holds {vocabulary} kinds of tokens, {model} knows "
                                 f"{body.config.vocab_size}: its tokenizer must be this model's")  # fmt: skip
        # RoBERTa numbers its positions from behind the padding token's id
        most = body.config.max_position_embeddings - (2 if "roberta" in body.config.model_type else 0)
        if longest > most:
            raise ValueError(f"{model} reads at most {most} tokens, not {longest}")
        self.body, self.longest, self.unit, self.precision = body, longest, unit, precision
        self.room = longest - len(self.before) - len(self.after)  # for tokens of the text itself
        hidden = body.config.hidden_size
        dense = [nn.Linear(hidden, embedding), *[nn.ReLU()] * (activation == "relu")] if embedding else []
        self.project = nn.Sequential(*dense)
        # what training and evaluation ask of every encoder: its parts and their weights
        self.parts, self.counts = {"document": embedding or hidden}, None
        self.register_buffer("weights", torch.ones(1))

    def forward(self, batch: Batch) -> Tensor:
        """Batch of (B, M, L) tokens -> (B, D), float32."""
        tokens, real = self._documents(batch)
        count = real.sum(1)
        order = count.argsort(stable=True)
        pooled = [self._pool(tokens[rows], real[rows]) for rows in self._buckets(order, count)]
        vectors = self.project(torch.cat(pooled)[order.argsort()])
        return nnf.normalize(vectors, dim=1) if self.unit else vectors

    def _documents(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(B, longest) tokens of whole documents, 0 behind their end, and which are real."""
        flat = batch.tokens.masked_fill(~batch.mask[..., None], PAD).flatten(1)
        there = flat != PAD
        place = there.cumsum(1) - 1
        row, column = (there & (place < self.room)).nonzero(as_tuple=True)
        count = there.sum(1).clamp(max=self.room)
        whole = count + len(self.before) + len(self.after)
        tokens = flat.new_zeros(len(flat), max(int(whole.max()), 1))
        tokens[:, : len(self.before)] = flat.new_tensor(self.before)
        tokens[row, len(self.before) + place[row, column]] = flat[row, column]
        for number, token in enumerate(self.after):
            tokens[torch.arange(len(flat)), len(self.before) + count + number] = token
        return tokens, torch.arange(tokens.shape[1], device=flat.device) < whole[:, None]

    def _buckets(self, order: Tensor, count: Tensor) -> list[Tensor]:
        """Rows in the given order (the shortest first), cut where rows x longest would exceed the BUCKET."""
        most, lengths = BUCKET[order.device.type], count[order].tolist()
        cuts, begin = [0], 0
        for end, length in enumerate(lengths):
            if end > begin and (end + 1 - begin) * length > most:
                cuts.append(begin := end)
        return [order[a:b] for a, b in zip(cuts, [*cuts[1:], len(lengths)])]

    def _pool(self, tokens: Tensor, real: Tensor) -> Tensor:
        """(b, hidden): mean of the last layer over the real tokens; zero where there are none."""
        width = max(int(real.sum(1).max()), 1)
        tokens, real = tokens[:, :width], real[:, :width]
        seen = real.clone()
        seen[:, 0] = True  # attention to nothing at all is not a number
        low = self.precision == "bf16"  # "no" must not switch off what training has switched on
        with torch.autocast(tokens.device.type, torch.bfloat16) if low else nullcontext():
            states = self.body(input_ids=tokens, attention_mask=seen.long()).last_hidden_state.float()
        return (states * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)

    def inference(self):
        """What :func:`helpers.encoders.embed.embed` opens around many batches: nothing to prepare here."""
        return nullcontext()
