"""Any pretrained transformer as an encoder of posts (tyo2021 section 2, Figure 1).

A post whose tokens are not the model's own is decoded to text, and cut into the model's tokens. No
code that comes with a model is run, and only tensors are unpickled;
:mod:`helpers.tokens.tokenizer` says where a model is.

Letters: N posts, L tokens a post.
"""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..core.artifacts import read_json
from ..core.messages import file_error, readable_file
from ..tokens.batch import PAD
from ..tokens.tokenizer import Tokenizer, locate_model, read_pretrained, tokenizer_file
from .base import load_tensors

# shape of the model "tiny", a BERT
TINY = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
}
# tokens, padding included, that pass through the transformer at once
BUCKET_TOKENS = {"cpu": 2**13, "cuda": 2**17}


# where DistilRoBERTa, LUAR's body, differs from RobertaConfig's defaults; LUAR's config.json does
# not tell
LUAR_BODY = {
    "num_hidden_layers": 6,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}
# tensors that some releases hold in addition, and that nothing here uses
UNREAD_TENSORS = ("transformer.pooler.", "transformer.embeddings.position_ids")


class Transformer(nn.Module):
    """Read the first tokens of a post; average the last layer over the real ones.

    Texts of similar length pass together, so that little time is spent on padding; no vector
    depends on that.

    Parameters
    ----------
    vocabulary : int
        number of different tokens of the store
    settings : StreamConfig
        settings of :mod:`helpers.encoders.stream`, of which these are read

        * model : name or folder, see :mod:`helpers.tokens.tokenizer` (paper:
          bert-base-cased), or "tiny": two layers with random weights for the tokens of any
          tokenizer
        * max_tokens : most tokens of a text, special tokens of the model included
        * precision : "bf16" computes the transformer in bfloat16, "no" leaves the precision alone
        * depth : number of layers that are kept, from the first on; 0 for all
        * frozen : number of layers that are not trained, from the first on, like the embeddings of
          the tokens; 0 trains everything
        * every_layer : whether the means of the embeddings and of every layer are concatenated,
          instead of the last layer's mean alone; lower layers tell style
        * dropout : dropout rate in all layers
    tokenizer : Tokenizer or None
        the store's tokenizer; needed where its tokens are not the model's own

    Raises
    ------
    ValueError
        If the model is not installed, reads fewer tokens than ``max_tokens``, has fewer layers than
        ``depth`` or ``frozen``, or knows fewer tokens than the store.
    """

    def __init__(self, vocabulary: int, settings, tokenizer: Tokenizer | None = None):
        from transformers import AutoTokenizer, BertConfig, BertModel

        super().__init__()
        self.decode = None  # tokens of the store to text, where they are not the model's
        self.model_tokenizer = None
        # special tokens of the model around a text
        self.before = []
        self.after = []
        if settings.model == "tiny":
            body = BertModel(BertConfig(vocab_size=vocabulary, **TINY), add_pooling_layer=False)
        else:
            body, _ = model_parts(settings.model)
            if hasattr(body, "pooler"):
                body.pooler = None  # reads the first token only; not used here
            self.model_tokenizer = read_pretrained(settings.model, AutoTokenizer)
            self.before, self.after = _special_tokens(self.model_tokenizer)
            if tokenizer and tokenizer.model != tokenizer_file(settings.model):
                self.decode = tokenizer.decode
        if self.decode is None and vocabulary > body.config.vocab_size:
            raise ValueError(
                f"the store holds {vocabulary} kinds of tokens, {settings.model} knows "
                f"{body.config.vocab_size}: its tokenizer must be this model's"
            )
        _check_length(body, settings)
        layers = _choose_layers(body, settings)
        for module in body.modules():
            if isinstance(module, nn.Dropout):
                module.p = settings.dropout
        if not torch.cuda.is_available():
            # on a CPU a training step takes twice as long with the fused attention
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
        posts = [post[post != PAD] for post in tokens.cpu().numpy()]
        if self.decode:
            texts = [self.decode(post) for post in posts]
            posts = self.model_tokenizer(
                texts, add_special_tokens=False, truncation=True, max_length=self.text_tokens
            )["input_ids"]
        rows = []
        for post in posts:
            row = [*self.before, *post[: self.text_tokens], *self.after]
            rows.append(torch.tensor(row or [PAD], dtype=torch.long))
        framed = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        framed = framed.to(tokens.device)

        order = (framed != PAD).sum(1).argsort(stable=True)
        rows_at_once = max(BUCKET_TOKENS[tokens.device.type] // framed.shape[1], 1)
        pooled = [self._pool(framed[part]) for part in order.split(rows_at_once)]
        return torch.cat(pooled)[order.argsort()]

    def _pool(self, tokens):
        """Return the means of the layers over the real tokens, (n, dim); zero where none is."""
        real = tokens != PAD
        width = max(int(real.sum(1).max()), 1)
        tokens = tokens[:, :width]
        real = real[:, :width]
        attended = real.clone()
        attended[:, 0] = True  # a softmax over no token at all is NaN
        precision = nullcontext()  # "no" leaves an autocast of the training as it is
        if self.precision == "bf16":
            precision = torch.autocast(tokens.device.type, torch.bfloat16)
        with precision:
            output = self.body(
                input_ids=tokens.clamp(min=0),
                attention_mask=attended.long(),
                output_hidden_states=self.every_layer,
            )
        layers = output.hidden_states if self.every_layer else [output.last_hidden_state]
        count = real.sum(1, keepdim=True).clamp(min=1)
        means = [(states.float() * real[..., None]).sum(1) / count for states in layers]
        return torch.cat(means, 1)


def _special_tokens(tokenizer):
    """Return the ids that a tokenizer puts before and after a text: [CLS], [SEP] for BERT."""
    framed = tokenizer("a", return_special_tokens_mask=True)
    ids = framed["input_ids"]
    mask = framed["special_tokens_mask"]
    before = mask.index(0)
    return ids[:before], ids[before + mask.count(0) :]


def _check_length(body, settings):
    """Raise ValueError where texts are longer than a model can read."""
    limit = body.config.max_position_embeddings
    if "roberta" in body.config.model_type:
        limit -= 2  # its positions begin after the padding token's id, which is 1
    if settings.max_tokens > limit:
        raise ValueError(
            f"{settings.model} reads at most {limit} tokens, not {settings.max_tokens}"
        )


def _choose_layers(body, settings):
    """Cut a model to its first layers, freeze the lowest of them, and return the layers left."""
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


def is_luar(name: str) -> bool:
    """Tell whether a model's folder has the form in which LUAR is released."""
    path = Path(locate_model(name)) / "config.json"
    if not path.exists():
        return False
    with readable_file(path):
        return read_json(path).get("model_type") == "LUAR"


def load_luar(name: str) -> nn.ModuleDict:
    """Load a released LUAR: ``transformer`` reads a post, ``linear`` projects the pooled posts.

    Parameters
    ----------
    name : str
        a model whose folder holds config.json, and model.safetensors or pytorch_model.bin

    Raises
    ------
    ValueError
        If the weights are missing, damaged or those of another model, or if posts are pooled by an
        attention of several heads.

    References
    ----------
    Rivera-Soto et al., Learning Universal Authorship Representations, EMNLP 2021, section 3.
    """
    from transformers import RobertaConfig, RobertaModel

    # tensors only: no code is unpickled
    from transformers.modeling_utils import load_state_dict

    folder = Path(locate_model(name))
    transformer = RobertaModel(RobertaConfig(**LUAR_BODY), add_pooling_layer=False)
    path = folder / "config.json"
    config = read_json(path)
    with readable_file(path, "describes no LUAR"):
        if config.get("use_memory_efficient_attention"):
            raise file_error(path, "is of an attention with several heads, which is not read")
        linear = nn.Linear(transformer.config.hidden_size, config["embedding_size"])
    luar = nn.ModuleDict({"transformer": transformer, "linear": linear})

    path = folder / "model.safetensors"
    if not path.exists():
        path = folder / "pytorch_model.bin"
    with readable_file(path):
        tensors = load_state_dict(path)
    kept = {key: value for key, value in tensors.items() if not key.startswith(UNREAD_TENSORS)}
    load_tensors(luar, kept, path)
    return luar


def model_parts(name: str) -> tuple[Any, nn.Linear | None]:
    """Load a model in two parts: its transformer, and its last layer, or None where it has none.

    Parameters
    ----------
    name : str
        name or folder of the model

    Raises
    ------
    ValueError
        As :func:`helpers.tokens.tokenizer.read_pretrained` and :func:`load_luar`.
    """
    from transformers import AutoModel

    if is_luar(name):
        luar = load_luar(name)
        return luar["transformer"], luar["linear"]
    model, about = read_pretrained(name, AutoModel, output_loading_info=True)
    # transformers would begin with random numbers in place of missing weights
    missing = sorted(key for key in about["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise file_error(locate_model(name), f"lacks the weights {missing[0]!r}")
    return model, None
