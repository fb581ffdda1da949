import json


def test_the_demo_trains_and_compares(cli):
    done = cli("demo", "--queries", "60", "--jobs", "1", "--json")
    assert done.code == 0, done.err
    rows = json.loads(done.out)["rows"]
    means = {(row["system"], row["measure"]): row["mean"] for row in rows}
    assert means["LightGBM lambdarank", "ndcg@10"] > means["one feature", "ndcg@10"]


def test_the_table_names_data_systems_and_test(cli):
    done = cli("demo", "--queries", "40", "--jobs", "1")
    assert "LightGBM lambdarank" in done.out
    assert "randomisation" in done.err
    assert "train" in done.err
