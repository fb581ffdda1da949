import json

import pytest

from tests.cluster.clusters import local_cluster


@pytest.fixture(scope="module")
def address():
    with local_cluster() as client:
        yield client.scheduler.address


def test_train_and_find_issues_on_a_cluster(cli, files, address):
    trees = ["--trees", "8", "--leaves", "4", "--min-docs", "5"]
    done = cli(
        "train", "train.txt", "--valid", "valid.txt", "-o", "m.txt", *trees, "--scheduler", address, "--json"
    )
    assert done.code == 0, done.err
    assert 1 <= json.loads(done.out)["trees"] <= 8
    assert cli("predict", "m.txt", "valid.txt", "-o", "scores.txt").code == 0
    for name, more in (("here.csv", []), ("there.csv", ["--scheduler", address])):
        done = cli(
            "find-issues", "train.txt", "-o", name, "--method", "confident", "--option", "folds=2", *more
        )
        assert done.code == 0, done.err
    assert (files / "here.csv").read_bytes() == (files / "there.csv").read_bytes()


def test_rankers_that_are_no_trees_refuse_it(cli, files, address):
    done = cli("train", "train.txt", "-o", "m.json", "--model", "prank", "--scheduler", address)
    assert done.code == 2
    assert "--scheduler goes with rankers of trees; got prank" in " ".join(done.err.split())


def test_a_cluster_that_is_not_there_leaves_no_file(cli, files, monkeypatch):
    monkeypatch.setattr("cleanrank.cluster.client.CONNECT_SECONDS", 0.2)
    done = cli("train", "train.txt", "-o", "m.txt", "--trees", "3", "--scheduler", "tcp://127.0.0.1:1")
    assert done.code == 2
    assert "scheduler must be the address of a running Dask cluster" in " ".join(done.err.split())
    assert not (files / "m.txt").exists()
