import numpy as np

import cleanrank as cr


def test_a_comparison_has_a_page_and_keeps_its_inputs(cli, tmp_path, toy):
    cr.write_letor(toy, tmp_path / "data.txt")
    rng = np.random.default_rng(1)
    for name in ("good", "bad"):
        np.savetxt(tmp_path / f"{name}.txt", rng.normal(size=toy.n_docs))
    page = tmp_path / "page.html"
    words = ("compare", tmp_path / "data.txt", f"<b>={tmp_path / 'good.txt'}", f"bad={tmp_path / 'bad.txt'}")
    done = cli(*words, "--permutations", 200, "--html", page)
    assert done.code == 0, done.err
    text = page.read_text()
    assert "won/tied/lost" in text
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    done = cli(*words, "-m", "dcg@10", "--noise", "uniform:.1", "--html", page)
    assert done.code == 0, done.err
    assert "Corrected for" in page.read_text()
    before = (tmp_path / "data.txt").read_bytes()
    assert cli(*words, "--html", tmp_path / "data.txt", "--force").code == 2
    assert (tmp_path / "data.txt").read_bytes() == before
