import json


def test_the_demo_tells_the_whole_story(cli, tmp_path):
    page = tmp_path / "demo.html"
    done = cli("demo", "--queries", "30", "--jobs", "1", "--html", str(page))
    assert done.code == 0, done.err
    assert page.read_text().startswith("<!doctype html>")
    for name in ("posterior, 100 rows judged again", "SOUR", "cleaned labels", "clean labels"):
        assert name in done.out
    for words in ("finding issues", "training on noisy labels", "randomisation", "judged again put the rate"):
        assert words in done.err


def test_json_is_all_that_stands_on_stdout(cli, tmp_path):
    done = cli("demo", "--queries", "30", "--jobs", "1", "--html", str(tmp_path / "a.html"), "--json")
    found = json.loads(done.out)
    assert found["queries"] == {"train": 15, "validation": 6, "test": 9}
    assert {"detectors", "systems", "worst", "steps"} <= set(found)
