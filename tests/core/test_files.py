"""Files that a user names: whatever packs them, damaged, far larger unpacked; and never lost."""

import bz2
import codecs
import gzip
import lzma
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from backports import zstd

from helpers.core import files
from helpers.core.files import check_readable, check_target, counted_damage, open_text, write_target

PACK = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": lambda data: bz2.compress(data, 1),  # in blocks of 100 kB
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}
TEXT = "".join(f"größe {number} of {number * number}\n" for number in range(9000)).encode()


@pytest.mark.parametrize("packing", PACK)
class TestReading:
    def test_the_content_is_unpacked(self, tmp_path, packing):
        path = tmp_path / f"p.csv{packing}"
        path.write_bytes(PACK[packing](TEXT))
        check_readable(path)
        assert files.bare_path(path) == tmp_path / "p.csv"
        with files.open_text(path) as file:
            assert file.read() == TEXT.decode()

    def test_several_files_in_one(self, tmp_path, packing):
        (tmp_path / "p").write_bytes(PACK[packing](TEXT) + PACK[packing](TEXT))
        assert open_text(tmp_path / "p").read() == 2 * TEXT.decode()

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
    def test_other_encodings_are_read(self, tmp_path, packing, encoding):
        mark = codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
        (tmp_path / "p").write_bytes(PACK[packing](mark + TEXT.decode().encode(encoding)))
        assert open_text(tmp_path / "p").read() == TEXT.decode()

    def test_a_cut_file_gives_what_precedes_the_cut(self, tmp_path, packing):
        text = random.Random(0).randbytes(1 << 17).hex().encode()
        packed = PACK[packing](text)
        (tmp_path / "p").write_bytes(packed[: len(packed) // 2])
        content = ""
        drops = Counter()
        with open_text(tmp_path / "p") as file, counted_damage(drops):
            while piece := file.read(1000):
                content += piece
        assert text.decode().startswith(content) and len(content) > len(text) / 4
        assert drops["truncated_file"] == bool(packing)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.gz", TEXT, "p.gz holds no packed file, and not what its ending says"),
        ("p.zst", gzip.compress(TEXT), "p.zst holds .gz, and not what its ending says"),
        ("p.csv", gzip.compress(TEXT), "p.csv holds .gz, .* rename it"),
        ("p.csv", b"PK\x03\x04...", "p.csv holds .zip, .* save it as CSV"),
        ("p.xlsx", b"PK\x03\x04...", "p.xlsx is a spreadsheet or .* save its posts as CSV UTF-8"),
        ("p.ods", b"PK\x03\x04...", "p.ods is a spreadsheet or a document of an office"),
        ("none.csv", None, "none.csv is missing"),
        (".", None, "is a folder or a device: name a file"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        check_readable(tmp_path / name)


class TestWriting:
    def test_a_new_file_is_whole_and_private(self, tmp_path):
        path = tmp_path / "x"
        (tmp_path / "x.partial").write_text("another's")
        (tmp_path / "x.sha256").write_text("another's")
        with write_target(path) as partial:
            partial.write_text("new")
            assert not path.exists()
        assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(KeyError):
            with write_target(path) as partial:
                partial.write_text("half")
                raise KeyError
        assert path.read_text() == "new"
        assert sorted(os.listdir(tmp_path)) == ["x", "x.partial", "x.sha256"]

    def test_an_input_is_never_replaced_and_else_only_what_one_says(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        source = Path("a.csv")
        source.write_text("posts")
        Path("soft").symlink_to("a.csv")
        os.link("a.csv", "hard")
        for spelling in ("a.csv", "./a.csv", f"../{tmp_path.name}/a.csv", "soft", "hard"):
            with pytest.raises(ValueError, match="is the file to read: name another file"):
                check_target(spelling, ["b.csv", source.absolute()], True)
        with pytest.raises(ValueError, match="a.csv exists: .* or replace it with --force"):
            check_target(source)
        check_target(source, force=True)
        for folder in (tmp_path, tmp_path / "none" / "x"):
            with pytest.raises(ValueError, match="is a folder|is no folder to write to"):
                check_target(folder, force=True)
