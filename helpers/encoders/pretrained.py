"""Networks of pretrained models, which :mod:`helpers.tokens.pretrained_tokenizers` locates.

No code that comes with a model is run, and only tensors are unpickled.
"""

from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

from torch import nn

from ..core.artifacts import read_json
from ..core.messages import FileError, file_error, readable_file
from ..tokens.pretrained_tokenizers import locate_model, read_pretrained
from .base import all_finite, load_tensors

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
        If the weights are missing, damaged or those of another model, or if the posts are pooled by
        an attention of several heads.

    References
    ----------
    Rivera-Soto et al., Learning Universal Authorship Representations, EMNLP 2021, section 3.
    """
    from transformers import RobertaConfig, RobertaModel
    from transformers.modeling_utils import (
        load_state_dict,
    )  # tensors only: no code is unpickled

    folder = Path(locate_model(name))
    transformer = RobertaModel(RobertaConfig(**LUAR_BODY), add_pooling_layer=False)
    path = folder / "config.json"
    config = read_json(path)
    with readable_file(path, "describes no LUAR"):
        if config.get("use_memory_efficient_attention"):
            raise FileError(
                f"{folder}: its attention has several heads (use_memory_efficient_attention), "
                "LUAR's has one"
            )
        linear = nn.Linear(transformer.config.hidden_size, config["embedding_size"])
    luar = nn.ModuleDict({"transformer": transformer, "linear": linear})

    path = folder / "model.safetensors"
    if not path.exists():
        path = folder / "pytorch_model.bin"
    with readable_file(path):
        if is_zipfile(path) and ZipFile(path).testzip():  # torch does not look at the checksums
            raise file_error(path)
        tensors = {}
        for key, value in load_state_dict(path).items():
            if not key.startswith(UNREAD_TENSORS):
                tensors[key] = value
    load_tensors(luar, tensors, path)
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
    model, about = read_pretrained(name, AutoModel, output_loading_info=True)
    # transformers would begin with random numbers in place of missing weights
    missing = sorted(key for key in about["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise file_error(locate_model(name), f"lacks the weights {missing[0]!r}")
    for key, value in model.state_dict().items():
        if not all_finite(value):
            raise file_error(locate_model(name), f"holds weights {key!r} that are not finite")
    return model, None
