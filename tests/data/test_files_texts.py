import gzip
import lzma

import pytest
import zstandard

from cleanrank.data import files
from cleanrank.data.files import open_packed, open_texts
from cleanrank.errors import BadFileError, MissingDataError

PLAIN = b"one\ntwo\n\nthree\n"
PACKS = {
    "plain": lambda raw: raw,
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("small", [0, 1 << 20])
@pytest.mark.parametrize("packing", PACKS)
@pytest.mark.parametrize("raw", [PLAIN, PLAIN[:-1], b"x", b"\xef\xbb\xbf" + PLAIN, b"\n"])
def test_texts_hold_the_file_and_end_with_a_line_feed(tmp_path, monkeypatch, small, packing, raw):
    monkeypatch.setattr(files, "SMALL", small)
    (tmp_path / "a").write_bytes(PACKS[packing](raw))
    found = open_texts(tmp_path / "a")
    held = b"".join(bytes(t.raw[t.start : t.end]) for t in found)
    assert held == raw.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n") + b"\n"


@pytest.mark.parametrize("part", [1, 4, 5, 100])
def test_parts_are_whole_lines_and_positions_know_their_line(tmp_path, monkeypatch, part):
    monkeypatch.setattr(files, "PART", part)
    monkeypatch.setattr(files, "SMALL", 0)
    monkeypatch.setattr(files, "BLOCK", 3)
    (tmp_path / "a").write_bytes(PLAIN + b"tail")
    found = open_texts(tmp_path / "a")
    cut = [bytes(t.raw[a:b]) for t in found for a, b in t.parts()]
    assert b"".join(cut) == PLAIN + b"tail\n"
    assert all(each.endswith(b"\n") for each in cut)
    starts = [(t.line_of(a), bytes(t.raw[a : t.line_end(a)])) for t in found for a, _ in t.parts()]
    assert all([b"", b"one", b"two", b"", b"three", b"tail"][line] == text for line, text in starts)


@pytest.mark.parametrize("packing", ["gzip", "xz", "zstd"])
def test_several_compressed_streams_in_one_file(tmp_path, packing):
    (tmp_path / "a").write_bytes(PACKS[packing](b"a\n") + PACKS[packing](b"b\n"))
    assert open_texts(tmp_path / "a")[0].raw == b"a\nb\n"


@pytest.mark.parametrize("packing", ["gzip", "xz", "zstd"])
def test_a_cut_off_compressed_file_is_refused(tmp_path, packing):
    (tmp_path / "a").write_bytes(PACKS[packing](PLAIN * 50)[:-6])
    with pytest.raises(BadFileError, match=f"whole {packing} file"):
        open_texts(tmp_path / "a")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MissingDataError, match="no file"):
        open_texts(tmp_path / "absent")


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst", ".txt", ""])
def test_what_is_packed_is_unpacked(tmp_path, suffix):
    path = tmp_path / "a"
    with open_packed(path, suffix) as out:
        out.write(PLAIN)
    assert open_texts(path)[0].raw == PLAIN
    assert (path.read_bytes() == PLAIN) == (suffix in ("", ".txt"))
