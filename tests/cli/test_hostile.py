"""Commands and files of spreadsheets, other systems, and people who mean harm: a result or one sentence."""

import errno
import gzip
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data import files

HEADER = "query,url,grade,title,bm25,größe\n"
ROWS = [
    f'q{q},http://x/{q}/{d},{(q + d) % 3},"dé, {d}",{(q * 7 + d * 3) % 11 / 4},{d}\n'
    for q in range(6)
    for d in range(5)
]
TABLE = HEADER + "".join(ROWS)
NAMED = "--qid query --label grade"
LETOR = "".join(
    f"{(q + d) % 3} qid:{q} 1:{d} 2:{(q * 7 + d * 3) % 11 / 4}\n" for q in range(6) for d in range(5)
)


def cut_at(delimiter):
    """The table with another delimiter; commas within quotes stay."""
    lines = [line.replace("dé, ", "dé§ ").replace(",", delimiter) for line in TABLE.splitlines()]
    return "\n".join(lines).replace("§", ",") + "\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "j.csv").write_text(TABLE)
    (tmp_path / "d.txt").write_text(LETOR)
    return tmp_path


READ = {
    "utf-8": TABLE.encode(),
    "utf-8 with its mark": TABLE.encode("utf-8-sig"),
    "utf-16": TABLE.encode("utf-16"),
    "utf-16 big": b"\xfe\xff" + TABLE.encode("utf-16-be"),
    "cp1252": TABLE.encode("cp1252"),
    "cp1252 beyond the beginning": (HEADER.replace("ö", "o") + "".join(ROWS).replace("dé", "de")).encode()
    + b"q9,x,1,d\xe9,0.5,1\n" * 2,
    "sep line": ("sep=,\n" + TABLE).encode(),
    "CRLF": TABLE.replace("\n", "\r\n").encode(),
    "semicolons": cut_at(";").encode(),
    "tabs": cut_at("\t").encode(),
    "bars": cut_at("|").encode(),
    "sep line and semicolons, utf-16": ("sep=;\r\n" + cut_at(";")).encode("utf-16"),
    "decimal commas": cut_at(";").replace(".", ",").encode("cp1252"),
    "gzip under another name": gzip.compress(TABLE.encode()),
}  # fmt: skip


@pytest.mark.parametrize("kind", READ)
def test_tables_of_any_spreadsheet_are_read(cli, place, kind):
    (place / "a.csv").write_bytes(READ[kind])
    done = cli("diagnose", "a.csv", *NAMED.split())
    assert done.code == 0, done.err
    assert "2 features" in done.out, done.out
    assert ("warning: 'a.csv' is not UTF-8" in done.err) == ("cp1252" in kind or kind == "decimal commas"), (
        done.err
    )


# Each: the bytes of a file, what is run, what the message says.
REFUSED = {
    "a byte that is no letter": (b"query,grade,x\n1,0,\x81\n", f"diagnose a.csv {NAMED}",
        "must be UTF-8 text"),
    "binary": (b"\x80\x00\x01,b\n", f"diagnose a.csv {NAMED}", "must be UTF-8 text"),
    "half a utf-16 letter": (b"\xff\xfea\x00b", f"diagnose a.csv {NAMED}", "must be UTF-8 text"),
    "1e400": (b"query,grade,x\n1,0,1e400\n", f"diagnose a.csv {NAMED}", "must be finite or missing; got inf"),
    "-inf": (b"query,grade,x\n1,0,-inf\n", f"diagnose a.csv {NAMED}", "must be finite or missing; got -inf"),
    "a blank query": (b"query,grade,x\nq,0,1\n,1,2\n", f"diagnose a.csv {NAMED}", "must not be blank"),
    "a missing column": (b"query,grade,x\n1,0,1\n", "diagnose a.csv", "no column 'label' (--label)"),
    "a short row": (b"query,grade,x\n1,0,1\n1,1\n", f"diagnose a.csv {NAMED}", "line 3"),
    "a header alone": (b"query,grade,x\n", f"diagnose a.csv {NAMED}", "at least one row"),
    "nothing": (b"", f"diagnose a.csv {NAMED}", "must have a header line"),
    "a delimiter of two": (b"query,grade,x\n", f"diagnose a.csv {NAMED} --delimiter ;;", "one character"),
    "columns of LETOR": (LETOR.encode(), "diagnose a.txt --label grade",
        "--label must go with CSV or Parquet"),
    "no features of this name": (b"query,grade,x\n1,0,1\n", f"diagnose a.csv {NAMED} --features y",
        "no column 'y' (--features)"),
    "a cut gzip": (gzip.compress(TABLE.encode())[:-9], f"diagnose a.csv {NAMED}",
        "must be a whole gzip file"),
    "no workbook": (b"PK\x03\x04", "clean d.txt a.xlsx -o b.txt", "cannot be read as a workbook"),
    "no Parquet": (b"PAR1", "diagnose a.parquet", "cannot be read as Parquet"),
    "NUL in LETOR": (b"1 qid:1 1:\x00\n", "diagnose a.txt", "line 1"),
    "UTF-16 LETOR": (LETOR.encode("utf-16"), "diagnose a.txt", "a.txt"),
    "1e400 in LETOR": (b"1 qid:1 1:1e400\n", "diagnose a.txt", "must be finite"),
    "a feature twice": (b"1 qid:1 1:1 1:2\n", "diagnose a.txt", "line 1"),
    "CR alone": (LETOR.replace("\n", "\r").encode(), "diagnose a.txt", "line 1"),
    "nested brackets": (b"a = " + b"[" * 5000, "reproduce a.toml", "brackets nested too deep"),
    "a key of its own": (b'titel = "x"\n', "reproduce a.toml", "titel"),
    "latin-1 in a recipe": ("title = 'é'\n".encode("latin-1"), "reproduce a.toml", "must be valid TOML"),
    "a pickle as model": (pickle.dumps(print), "predict a.txt d.txt -o s.txt", "a.txt"),
    "half a model": (b"tree\nversion=v4\nnum_class=1\n", "predict a.txt d.txt -o s.txt", "a.txt"),
    "a sheet of other bytes": (b"row_id,true_grade\n0,\x81\n", "gold read a.csv d.txt", "must be UTF-8 text"),
    "a sheet without its columns": (b"a;b\n1;2\n", "gold read a.csv d.txt", "a.csv"),
    "issues without columns": (b"row_id;doubt\n0;1\n", "clean d.txt a.csv -o b.txt",
        "must have the column 'query_id'"),
    "a truth of other rows": (b"row_id,true_grade,given_grade\n77,1,1\n",
        "find-issues d.txt -o i.csv --truth a.csv",
        "no row 0"),
    "nested brackets in a matrix": (b"[" * 100_000, "corrupt d.txt --matrix a.json -o b.txt", "a.json"),
    "nested brackets in an estimate": (b"[" * 100_000, "find-issues d.txt --noise a.json -o i.csv", "a.json"),
    "a matrix of words": (b'{"a": "b"}', "corrupt d.txt --matrix a.json -o b.txt", "a.json"),
    "scores of words": (b"good\n", "evaluate d.txt a.txt", "must be one number on a line"),
    "clicks that are no table": (b"\x00\x01", "find-issues d.txt --method clicks --clicks a.csv -o i.csv",
        "a.csv"),
    "no rate": (b"", "corrupt d.txt -o b.txt", "Say --rate 0.2"),
    "a recipe that is not there": (b"", "reproduce noise/quik", "Did you mean noise/quick"),
    "a recipe for a larger machine": (
        b'title = "x"\nmeasures = ["ndcg@10"]\nseeds = [1]\n[[data]]\nname = "synthetic"\n[data.options]\n'
        b'n_queries = 1000000000\n[[noise]]\nprofile = "uniform"\nrates = [0.0]\n'
        b'[[methods]]\nmethod = "random"\n',
        "reproduce a.toml", "must give data that fit into memory",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_bad_files_get_one_sentence(cli, place, kind):
    raw, command, message = REFUSED[kind]
    name = next((word for word in command.split() if word.startswith("a.")), "a.none")
    (place / name).write_bytes(raw)
    before = sorted(path.name for path in place.iterdir() if path.name != "cache")
    done = cli(*command.split())
    assert done.code == 2, done
    assert message in done.err, done.err
    assert "Traceback" not in done.err
    assert sorted(path.name for path in place.iterdir() if path.name not in ("cache", ".cleanrank")) == before


def test_folders_loops_and_absent_files_are_named(cli, place):
    (place / "loop").symlink_to(place / "loop")
    for name in (".", "loop", "absent.csv", "/nonexistent/a.csv", "/dev/null"):
        done = cli("diagnose", name)
        assert done.code == 2, name
        assert "error: " in done.err, name


def test_a_packed_trap_is_not_unpacked(cli, place, monkeypatch):
    monkeypatch.setattr(files, "LEAST_LIMIT", 1 << 20)
    for name in ("a.csv", "a.txt"):
        (place / name).write_bytes(gzip.compress(b" " * (8 << 20)))
        done = cli("diagnose", name)
        assert done.code == 2
        assert "must unpack to at most 1 MiB (250 times its size)" in done.err


def test_a_full_disk_is_said_with_the_file(cli, place, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    (place / "old.txt").write_text("old")
    monkeypatch.setattr("cleanrank.data.letor.open_packed", full)
    done = cli("corrupt", "d.txt", "--rate", 0.2, "-o", "old.txt", "--force")
    assert (done.code, (place / "old.txt").read_text()) == (2, "old")
    assert "'old.txt' cannot be written: the disk is full" in done.err


@pytest.mark.parametrize("flags", ["WAHR FALSCH", "TRUE FALSE", "1 0", "yes no", "Vrai Faux"])
def test_issues_that_a_spreadsheet_saved_clean_data(cli, place, flags):
    true, false = flags.split()
    data = cr.read_data("d.txt")
    lines = [
        f"{row};{query};{label};{'0,9' if row == 3 else '0,125'};"
        f"{true if row == 3 else false};{label};note = {row}"
        for row, query, label in zip(data.row_ids, data.qid, data.y, strict=True)
    ]
    head = "row_id;query_id;given_label;doubt;is_label_issue;suggested_label;note"
    (place / "issues.csv").write_bytes("\r\n".join(["sep=;", head, *lines]).encode("cp1252"))
    done = cli("clean", "d.txt", "issues.csv", "-o", "clean.txt")
    assert done.code == 0, done.err
    assert cr.read_data("clean.txt").n_docs == data.n_docs - 1


def test_text_columns_come_through_and_any_table_takes_its_names(cli, place):
    done = cli(
        "find-issues",
        "j.csv",
        *NAMED.split(),
        "-o",
        "i.xlsx",
        "--doc-id",
        "url",
        "--method",
        "contradictions",
    )
    assert done.code == 0, done.err
    done = cli("clean", "j.csv", "i.xlsx", *NAMED.split(), "-o", "c.csv", "--mode", "reweight")
    assert done.code == 0, done.err
    assert "dé, 0" in (place / "c.csv").read_text(encoding="utf-8")
    done = cli("corrupt", "j.csv", *NAMED.split(), "--rate", 0.2, "--features", "bm25", "-o", "n.parquet")
    assert done.code == 0, done.err
    noisy = cr.read_data("n.parquet", label="grade", qid="query", features=["bm25"])
    assert noisy.extra["url"][0] == "http://x/0/0"


def test_pipes_are_read_like_files(place):
    def run(command, **options):
        words = [sys.executable, "-m", "cleanrank"]
        line = command.replace("cleanrank", " ".join(words))
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, **options)

    (place / "j.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    plain = run(f"cleanrank diagnose j.csv {NAMED}")
    assert plain.returncode == 0, plain.stderr
    for command in (f"cat j.csv | cleanrank diagnose - {NAMED}",
                    f"cleanrank diagnose <(zcat j.csv.gz) {NAMED}",
                    f"cat j.csv.gz | cleanrank diagnose /dev/stdin {NAMED}"):  # fmt: skip
        done = run(command)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[1:] == plain.stdout.splitlines()[1:]
    done = run("cat j.csv | cleanrank clean - - -o b.csv")
    assert done.returncode == 2
    assert "stdin must be named once" in done.stderr


def test_a_named_pipe_is_spooled(cli, place):
    os.mkfifo(place / "pipe")
    writer = threading.Thread(target=lambda: (place / "pipe").write_text(LETOR))
    writer.start()
    done = cli("gold", "sample", "pipe", "--n", 4, "-o", "sheet.csv")
    writer.join()
    assert done.code == 0, done.err


def test_markup_in_ids_is_text_on_pages(cli, place):
    trap = "<script>alert(1)</script>"
    (place / "a.csv").write_text(
        f"qid,label,{trap}\n" + "".join(f"{trap}{q},{d % 2},{d}\n" for q in range(4) for d in range(4))
    )
    done = cli("diagnose", "a.csv", "--html", "page.html")
    assert done.code == 0, done.err
    assert trap not in (place / "page.html").read_text()


def test_an_old_demo_page_may_be_replaced_and_no_other(cli, place):
    (place / "cleanrank-demo.html").write_text("<p>my own page")
    done = cli("demo")
    assert done.code == 2
    assert "must not exist yet; got 'cleanrank-demo.html'. Overwrite with --force" in done.err
    from cleanrank.cli.screen import own_page

    assert cli("diagnose", "d.txt", "--html", "page.html").code == 0
    assert own_page(place / "page.html")
    assert not own_page(place / "cleanrank-demo.html")


def test_scores_in_other_encodings_are_read(cli, place):
    scores = "\n".join(str(x) for x in np.linspace(0, 1, 30))
    (place / "s.txt").write_bytes(scores.encode("utf-16"))
    done = cli("evaluate", "d.txt", "s.txt", "-m", "ndcg@5")
    assert done.code == 0, done.err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_matrices_that_a_spreadsheet_saved_are_read(cli, place, encoding):
    (place / "m.csv").write_text("0,8;0,1;0,1\n0,1;0,8;0,1\n0,1;0,1;0,8\n", encoding=encoding)
    done = cli("corrupt", "d.txt", "--matrix", "m.csv", "-o", "n.txt")
    assert done.code == 0, done.err
