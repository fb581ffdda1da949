import json

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.metrics.risk_control import calibrate_cutoff


@pytest.fixture
def files(tmp_path):
    data = cr.make_ranking(150, 3, seed=0)
    cr.write_letor(data, tmp_path / "clean.txt")
    data = cr.read_letor(tmp_path / "clean.txt", cache=False)
    scores = data.y + np.random.default_rng(0).normal(size=data.n_docs)
    np.savetxt(tmp_path / "scores.txt", scores)
    return tmp_path, data, np.loadtxt(tmp_path / "scores.txt")


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--risk", "false_positives"], {"risk": "false_positives"}),
        (["--alpha", "0.25"], {"alpha": 0.25}),
        (["--delta", "0.2"], {"delta": 0.2}),
        (["--alpha", "0.3", "--cut", "rank"], {"alpha": 0.3, "cut": "rank"}),
        (["--method", "rcps"], {"method": "rcps"}),
        (["--bound", "hoeffding"], {"bound": "hoeffding"}),
        (["--relevant", "2"], {"relevant": 2}),
        (["--grid", "-1,0,0.5,1"], {"grid": [-1, 0, 0.5, 1]}),
        (
            ["--risk", "false_discovery", "--alpha", "0.6", "--grid", "0,1,2,3"],
            {"risk": "false_discovery", "alpha": 0.6, "grid": [0, 1, 2, 3]},
        ),
    ],
)
def test_the_command_finds_the_cut_of_the_library(cli, files, options, arguments):
    folder, data, scores = files
    done = cli("cutoff", folder / "clean.txt", folder / "scores.txt", *options, "--json")
    record = json.loads(done.out)
    expected = calibrate_cutoff(scores, data, order="data", **arguments)
    assert done.code == 0
    assert record["at"] == pytest.approx(expected.at)
    for name in ("risk", "alpha", "delta", "cut", "n_queries", "empirical", "upper", "trivial"):
        assert record[name] == pytest.approx(getattr(expected, name))


def test_every_option_changes_the_cut(cli, files):
    folder, *_ = files

    def record(*options):
        done = cli("cutoff", folder / "clean.txt", folder / "scores.txt", *options, "--json")
        return {name: json.loads(done.out)[name] for name in ("at", "empirical", "upper")}

    plain = record("--alpha", "0.2")
    for options in (
        ["--risk", "false_positives"],
        ["--delta", "0.3"],
        ["--cut", "rank"],
        ["--bound", "hoeffding"],
        ["--grid", "-1,0"],
        ["--relevant", "2"],
    ):
        assert record("--alpha", "0.2", *options) != plain, options
    # Where the risk is monotone and the grid fine, both methods find the same cut.
    assert record("--alpha", "0.2", "--method", "rcps") == plain


def test_the_guarantee_is_said_in_words(cli, files):
    folder, *_ = files
    words = ("cutoff", folder / "clean.txt", folder / "scores.txt", "--alpha", "0.2")
    done, record = cli(*words), json.loads(cli(*words, "--json").out)
    assert "relevant documents left out, a share of the relevant ones at most 0.2" in done.err
    rows = dict(line.rsplit(maxsplit=1) for line in done.out.splitlines() if line.strip())
    assert rows["calibration queries"] == "150"
    assert float(rows["show scores of at least"]) == pytest.approx(record["at"], rel=1e-4)


def test_a_cut_that_cannot_be_guaranteed_is_called_trivial(cli, files):
    folder, *_ = files
    done = cli("cutoff", folder / "clean.txt", folder / "scores.txt", "--grid", "9", "--json")
    assert json.loads(done.out)["trivial"] is True
    assert json.loads(done.out)["at"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--risk", "false_negative"], "Did you mean 'false_negatives'"),
        (["--risk", "false_discovery"], "grid must be given for a risk that is not monotone"),
        (["--risk", "false_discovery", "--grid", "1", "--method", "rcps"], "method must be 'ltt'"),
        (["--alpha", "1"], "alpha must be a number > 0 and < 1; got 1"),
        (["--alpha", "0.001"], "must number at least 2995"),
        (["--grid", "a,b"], "--grid must be numbers joined by ','"),
        (["--relevant", "9"], "with a grade of at least 9"),
        (["--cut", "page"], "unknown cut 'page'. Known: score, rank"),
    ],
)
def test_complaints_name_options(cli, files, options, message):
    folder, *_ = files
    done = cli("cutoff", folder / "clean.txt", folder / "scores.txt", *options)
    assert done.code == 2
    assert message in done.err


def test_scores_of_other_rows_are_refused(cli, files):
    folder, *_ = files
    (folder / "few.txt").write_text("1\n2\n")
    done = cli("cutoff", folder / "clean.txt", folder / "few.txt")
    assert done.code == 2
    assert "must hold one score per row" in done.err
