"""Any pretrained transformer as an encoder of posts (tyo2021 section 2, Figure 1).

A post in other tokens than the model's own is read as text and cut into those.

Letters: N posts, L tokens a post.
"""

from contextlib import nullcontext

import torch
import torch.nn.functional as nnf
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
# tokens, padding included, that pass through the transformer at once
BUCKET_TOKENS = {"cpu": 2**13, "cuda": 2**17}


class Transformer(nn.Module):
    """Read the first tokens of a post; average the last layer over the real ones.

    Texts pass in buckets of similar length, so that short ones do not pay for long ones; no vector
    depends on that.

    Parameters
    ----------
    vocabulary : int
        kinds of tokens of the store
    settings : StreamConfig
        of :mod:`helpers.encoders.stream`, of which are read

        * model : as of :mod:`helpers.tokens.pretrained_tokenizers` (paper: bert-base-cased), or
          "tiny": two layers with random weights for the tokens of any tokenizer
        * max_tokens : of a text, with those that the model puts around it
        * precision : "bf16" for the transformer, "no" for float32
        * depth : of its layers the first so many, 0 for all
        * frozen : so many of these, and the tokens' embeddings, are not trained; 0 trains all
        * every_layer : means of the embeddings and of all layers, one after the other, instead of
          the last layer's; lower ones tell style
        * dropout : in all layers
    tokenizer : Tokenizer or None
        of the store, where its tokens are not the model's own

    Raises
    ------
    ValueError
        For a model that is not there, a text or depth beyond its own, or a store of more kinds of
        tokens than it knows.
    """

    def __init__(self, vocabulary: int, settings, tokenizer: Tokenizer | None = None):
        from transformers import AutoTokenizer, BertConfig, BertModel

        super().__init__()
        model = settings.model
        self.store_tokenizer = None
        self.model_tokenizer = None
        # special tokens around a text
        self.before = []
        self.after = []
        if model == "tiny":
            body = BertModel(BertConfig(vocab_size=vocabulary, **TINY), add_pooling_layer=False)
        else:
            body, _ = pretrained.model_parts(model)
            if hasattr(body, "pooler"):
                body.pooler = None  # reads the first token only; nothing here does
            self.before, self.after = pretrained_tokenizers.special_tokens(model)
            if tokenizer and tokenizer.model != pretrained_tokenizers.tokenizer_file(model):
                self.store_tokenizer = tokenizer
                self.model_tokenizer = pretrained_tokenizers.read_pretrained(model, AutoTokenizer)
        if self.model_tokenizer is None and vocabulary > body.config.vocab_size:
            raise ValueError(
                f"the store holds {vocabulary} kinds of tokens, {model} knows "
                f"{body.config.vocab_size}: its tokenizer must be this model's"
            )
        _check_length(body, settings)
        layers = _choose_layers(body, settings)
        for module in body.modules():
            if isinstance(module, nn.Dropout):
                module.p = settings.dropout
        if not torch.cuda.is_available():
            # on a CPU the fused kernel's backward pass takes twice the step
            body.set_attn_implementation("eager")

        self.body = body
        self.precision = settings.precision
        self.every_layer = settings.every_layer
        n_means = len(layers) + 1 if self.every_layer else 1
        self.dim = body.config.hidden_size * n_means
        self.text_tokens = settings.max_tokens - len(self.before) - len(self.after)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the (N, dim) float32 vectors of tokens (N, L) with PAD at the end.

        A post without any token has a zero vector where the model puts no tokens around it.
        """
        tokens, real = self._framed(tokens)
        count = real.sum(1)
        order = count.argsort(stable=True)
        pooled = [self._pool(tokens[rows], real[rows]) for rows in self._buckets(order, count)]
        return torch.cat(pooled)[order.argsort()]

    def _framed(self, tokens):
        """Return (N, longer) tokens with the model's own around them, and which are real.

        Behind the end of a text stands token 0.
        """
        if self.model_tokenizer:
            tokens = self._retokenised(tokens)
        text = tokens[:, : self.text_tokens]
        n_after = len(self.after)
        end = len(self.before) + (text != PAD).sum(1, keepdim=True)  # (N, 1)

        before = tokens.new_tensor(self.before).expand(len(text), -1)
        after = tokens.new_tensor(self.after).expand(len(text), -1)
        framed = torch.cat([before, nnf.pad(text.clamp(min=0), (0, n_after + 1))], 1)
        framed.scatter_(1, end + torch.arange(n_after, device=text.device), after)
        place = torch.arange(framed.shape[1], device=text.device)
        return framed, place < end + n_after

    def _retokenised(self, tokens):
        """Return (N, L) tokens of the store as (N, longest) tokens of the model."""
        posts = tokens.cpu().numpy()
        texts = [self.store_tokenizer.decode(post[post != PAD]) for post in posts]
        encoded = self.model_tokenizer(
            texts, add_special_tokens=False, truncation=True, max_length=self.text_tokens
        )
        rows = [torch.tensor(ids, dtype=torch.long) for ids in encoded["input_ids"]]
        padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        return padded.to(tokens.device)

    def _buckets(self, order, count):
        """Cut rows in the given order, the shortest first, where a bucket would be too large."""
        limit = BUCKET_TOKENS[order.device.type]
        cuts = []
        begin = 0
        for end, length in enumerate(count[order].tolist()):
            if end > begin and (end + 1 - begin) * length > limit:
                begin = end
                cuts.append(end)
        return order.tensor_split(cuts)

    def _pool(self, tokens, real):
        """Return the means of the layers over the real tokens, (n, dim); zero where none is."""
        width = max(int(real.sum(1).max()), 1)
        tokens = tokens[:, :width]
        real = real[:, :width]
        attended = real.clone()
        attended[:, 0] = True  # attention to nothing at all is not a number
        precision = nullcontext()  # "no" must not switch off what training has switched on
        if self.precision == "bf16":
            precision = torch.autocast(tokens.device.type, torch.bfloat16)
        with precision:
            output = self.body(
                input_ids=tokens,
                attention_mask=attended.long(),
                output_hidden_states=self.every_layer,
            )
        layers = output.hidden_states if self.every_layer else [output.last_hidden_state]
        count = real.sum(1, keepdim=True).clamp(min=1)
        means = [(states.float() * real[..., None]).sum(1) / count for states in layers]
        return torch.cat(means, 1)


def _check_length(body, settings):
    """Raise ValueError where texts are longer than a model can read."""
    limit = body.config.max_position_embeddings
    if "roberta" in body.config.model_type:
        limit -= 2  # it numbers its positions from behind the padding token's id
    if settings.max_tokens > limit:
        raise ValueError(
            f"{settings.model} reads at most {limit} tokens, not {settings.max_tokens}"
        )


def _choose_layers(body, settings):
    """Leave a model its first layers, freeze the lowest of them, and return all that are left."""
    layers = next(module for module in body.modules() if isinstance(module, nn.ModuleList))
    needed = max(settings.depth, settings.frozen)
    if needed > len(layers):
        raise ValueError(f"{settings.model} has {len(layers)} layers, not {needed}")
    if settings.depth:
        del layers[settings.depth :]
    if settings.frozen:
        body.requires_grad_(False)
        layers[settings.frozen :].requires_grad_(True)
    return layers
