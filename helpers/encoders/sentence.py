"""A pretrained sentence encoder as it is, for zero-shot baselines.

khan2021 section 4.3 compares with the Universal Sentence Encoder on concatenated posts by angular distance; here a
sentence transformer plays that part; as the angle falls with the cosine, ranks and error rates are the cosine's.
"""

import numpy as np
import torch
import torch.nn.functional as nnf
from torch import Tensor

from helpers.encoders.base import Encoder
from helpers.encoders.tfidf import texts
from helpers.tokens import pretrained
from helpers.tokens.batch import Batch

AT_ONCE = 16  # pieces that pass through the model together


class SentenceEncoder(Encoder):
    """The mean of a model's last layer over all tokens of a sample's concatenated posts, unit length.

    A text longer than ``max_tokens`` of the model's own tokens is read in pieces, which are batched by length.

    tokenizer : of the token store, to read its tokens as text. model : as of :mod:`helpers.tokens.pretrained`.
    Raises ValueError where the model cannot be loaded without the network.
    """

    def __init__(self, tokenizer, model: str = "minilm", max_tokens: int = 512):
        from transformers import AutoModel, AutoTokenizer

        super().__init__()
        self.tokenizer, self.max_tokens = tokenizer, max_tokens
        self.own_tokenizer, self.body = (pretrained.read(model, kind) for kind in (AutoTokenizer, AutoModel))
        self.dim = self.body.config.hidden_size

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """Batch of B samples -> (B, D)."""
        pieces = self.own_tokenizer(
            texts(batch, self.tokenizer), truncation=True, max_length=self.max_tokens, return_overflowing_tokens=True)
        sample = torch.tensor(pieces.pop("overflow_to_sample_mapping"))
        order = np.argsort([len(ids) for ids in pieces["input_ids"]], kind="stable")
        total = torch.zeros(len(batch), self.dim)
        for begin in range(0, len(order), AT_ONCE):
            rows = order[begin : begin + AT_ONCE]
            part = self.own_tokenizer.pad({name: [values[row] for row in rows] for name, values in pieces.items()},
                                          return_tensors="pt").to(self.device)  # fmt: skip
            states = self.body(**part).last_hidden_state
            summed = (states * part["attention_mask"][..., None]).sum(1)
            total.index_add_(0, sample[rows], summed.float().cpu())
        return nnf.normalize(total, dim=1)
