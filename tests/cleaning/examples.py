"""The examples of examples.yaml: texts, and what cleaning makes of them."""

from pathlib import Path

import yaml

EXAMPLES = yaml.safe_load(Path(__file__).with_name("examples.yaml").read_text("utf-8"))
