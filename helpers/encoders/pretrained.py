"""Networks of pretrained models, which :mod:`helpers.tokens.pretrained_tokenizers` locates.

No code that comes with a model is run, and only tensors are unpickled.
"""

from pathlib import Path
from typing import Any

from torch import nn

from helpers.core.artifacts import read_json
from helpers.tokens.pretrained_tokenizers import locate_model, read_pretrained

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


def is_luar(name: str) -> bool:
    """Tell whether a model's folder has the form in which LUAR is released."""
    path = Path(locate_model(name)) / "config.json"
    return path.exists() and read_json(path).get("model_type") == "LUAR"


def load_luar(name: str) -> nn.ModuleDict:
    """Load a released LUAR: ``transformer`` reads a post, ``linear`` projects the pooled posts.

    Parameters
    ----------
    name : str
        a model whose folder holds config.json, and model.safetensors or pytorch_model.bin

    Raises
    ------
    ValueError
        If the weights are missing, damaged or those of another model, or if the posts are pooled by
        an attention of several heads.

    References
    ----------
    Rivera-Soto et al., Learning Universal Authorship Representations, EMNLP 2021, section 3.
    """
    from transformers import RobertaConfig, RobertaModel
    from transformers.modeling_utils import load_state_dict  # tensors only: no code is unpickled

    folder = Path(locate_model(name))
    config = read_json(folder / "config.json")
    if config.get("use_memory_efficient_attention"):
        raise ValueError(
            f"{folder}: its attention has several heads (use_memory_efficient_attention), "
            "LUAR's has one"
        )
    transformer = RobertaModel(RobertaConfig(**LUAR_BODY), add_pooling_layer=False)
    linear = nn.Linear(transformer.config.hidden_size, config["embedding_size"])
    luar = nn.ModuleDict({"transformer": transformer, "linear": linear})

    path = folder / "model.safetensors"
    if not path.exists():
        path = folder / "pytorch_model.bin"
    try:
        tensors = load_state_dict(path)
        read_tensors = {
            key: value for key, value in tensors.items() if not key.startswith(UNREAD_TENSORS)
        }
        luar.load_state_dict(read_tensors)
    except Exception as error:  # the system's, safetensors', pickle's or torch's
        raise ValueError(f"{folder} holds no weights of LUAR, or others: {error}") from None
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
        As :func:`helpers.tokens.pretrained_tokenizers.read_pretrained` and :func:`load_luar`.
    """
    from transformers import AutoModel

    if is_luar(name):
        luar = load_luar(name)
        return luar["transformer"], luar["linear"]
    return read_pretrained(name, AutoModel), None
