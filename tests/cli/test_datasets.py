import json

import pytest

from cleanrank.data.catalogue import CATALOGUE


def test_the_list_names_every_data_set(cli, tmp_path):
    done = cli("datasets", "list", "--root", tmp_path, "--json")
    rows = json.loads(done.out)
    assert [row["name"] for row in rows] == list(CATALOGUE)
    assert not any(row["here"] for row in rows)


def test_show_says_how_to_get_it(cli, tmp_path):
    done = cli("datasets", "show", "mslr-web30k", "--root", tmp_path)
    assert done.code == 0
    assert "31,531" in done.out
    assert "how to get it" in done.out


def test_what_is_not_here_is_an_error_that_helps(cli, tmp_path):
    done = cli("datasets", "path", "istella-x", "--root", tmp_path)
    assert done.code == 2
    assert "istella" in done.err.lower()
    assert cli("datasets", "verify", "--root", tmp_path).code == 2
    assert "Did you mean 'mq2008'" in cli("datasets", "show", "mq20008").err


def test_a_set_that_differs_from_the_published_one_fails(cli, tmp_path):
    for fold in range(1, 6):
        folder = tmp_path / "MQ2008" / f"Fold{fold}"
        folder.mkdir(parents=True)
        for part in ("train", "vali", "test"):
            (folder / f"{part}.txt").write_text(f"1 qid:{fold}{part} 1:0.5\n0 qid:{fold}{part} 46:1\n")
    done = cli("datasets", "verify", "mq2008", "--root", tmp_path)
    assert done.code == 1
    assert "differs" in done.out


@pytest.mark.data
def test_the_data_at_hand_are_what_was_published(cli, data_root):
    done = cli("datasets", "verify", "--root", data_root, "--json")
    rows = json.loads(done.out)
    assert done.code == 0
    assert {"mq2008", "ohsumed", "mslr-sample", "20-newsgroups", "movielens-100k"} <= {
        r["dataset"] for r in rows
    }
    assert sum(r["verdict"] == "ok" for r in rows) > 40
