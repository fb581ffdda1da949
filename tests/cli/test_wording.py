import pytest

from cleanrank.cli.wording import in_options
from cleanrank.noise.estimate import FORMAT

NAMES = ("rate", "label", "features", "trees", "option", "min-doubt", "n-grades", "doc-id", "min-docs")
OPTIONS = dict.fromkeys(NAMES, True) | {"allow-unanswered": False}


@pytest.mark.parametrize(
    ("python", "worded"),
    [
        ("Say rate=0.2.", "Say --rate 0.2."),
        ("no column 'label' (label=). Did", "no column 'label' (--label). Did"),
        ("leave it out with features=['a', 'b'].", "leave it out with --features a,b."),
        ("Give n_estimators=50, please.", "Give --trees 50, please."),
        ("Set folds=2.", "Set --option folds=2."),
        ("As in draws_from=[0.7, 0.2, 0.1] for", "As in --option draws_from=0.7,0.2,0.1 for"),
        ("Say allow_unanswered=True.", "Say --allow-unanswered."),
        ("Use mode='expected'.", "Use --option mode=expected."),
        ("Write 'err:max_grade=4'.", "Write 'err:max_grade=4'."),
        ("Add --option robust=peer --option pairs=all.", "Add --option robust=peer --option pairs=all."),
        ("got 'rate=x' and grades {0: 1}", "got 'rate=x' and grades {0: 1}"),
        ("give gains=.", "give gains=."),
        ("P(y=1) == 2", "P(y=1) == 2"),
        ("min_doubt must be above 0. Raise min_doubt.", "--min-doubt must be above 0. Raise --min-doubt."),
        ("or give n_grades if the scale is", "or give --n-grades if the scale is"),
        ("leave it out with features=[...]: others", "leave it out with --features: others"),
        ("Name it in features=[...] to use it.", "Name it in --features to use it."),
        ("with allow_unanswered (--allow-unanswered).", "with --allow-unanswered."),
        (
            "'a min_doubt b' at /x/min_doubt/n_grades.csv",
            "'a min_doubt b' at /x/min_doubt/n_grades.csv",
        ),
        ("must have query_id and doc_id", "must have query_id and doc_id"),
        ("the model's n_grades, or 'n_grades'", "the model's --n-grades, or 'n_grades'"),
    ],
)
def test_arguments_become_options(python, worded):
    assert in_options(python, OPTIONS) == worded


@pytest.mark.parametrize("python", ["Raise min_doubt.", "Set folds=2.", "with features=[...]: others"])
def test_what_no_option_sets_stays(python):
    assert in_options(python, {}) == python


def test_the_scale_of_gold():
    assert in_options("give n_grades=5, or n_grades", {"grades": True}) == "give --grades 5, or --grades"


@pytest.mark.parametrize(
    ("python", "worded"),
    [
        ("Rename it, or pass an array, which is read by the place of its columns.", "Rename it."),
        ("Let more people judge them, or use model='family'.", "Let more people judge them."),
        ("(RecursionError('maximum depth exceeded')).", "(it is nested too deeply)."),
    ],
)
def test_what_only_python_has_is_left_out(python, worded):
    assert in_options(python, OPTIONS | {"model": True}) == worded


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{i % 3},q{i // 5},{i}" for i in range(30)]
    (tmp_path / "data.csv").write_text("\n".join(["label,qid,bm25", *lines]))
    return tmp_path / "data.csv"


def issues_of(path, suggested):
    head = "row_id,query_id,given_label,doubt,is_label_issue,suggested_label"
    lines = [f"{i},q{i // 5},{i % 3},0.9,True,{suggested(i)}" for i in reversed(range(30))]
    path.write_text("\n".join([head, *lines]))
    return path


def test_remedies_of_clean_are_its_options(cli, table, tmp_path):
    issues = issues_of(tmp_path / "i.csv", lambda i: 7 if i == 4 else 1)
    done = cli("clean", table, issues, "-o", "out.csv")
    assert done.code == 2
    assert "Raise --min-doubt." in done.err
    done = cli("clean", table, issues, "--mode", "relabel", "-o", "out.csv")
    assert "or give --n-grades if" in done.err
    done = cli("clean", table, issues, "--min-doubt", "2", "-o", "out.csv")
    assert "--min-doubt must" in done.err
    issues = issues_of(tmp_path / "i.csv", lambda i: "" if i == 4 else 1)
    done = cli("clean", table, issues, "--mode", "relabel", "-o", "out.csv")
    assert "suggested_label must be whole numbers; got an empty cell at row 4." in done.err


def test_a_noise_file_of_nested_lists(cli, table, tmp_path):
    (tmp_path / "n.json").write_text("[" * 100_000)
    (tmp_path / "e.json").write_text(f'{{"format": "{FORMAT}", "matrix": ' + "[" * 100_000)
    for name in ("n.json", "e.json"):
        done = cli("find-issues", table, "--noise", name, "-o", "i.csv")
        assert done.code == 2
        assert "nested too deeply" in done.err
        assert "RecursionError" not in done.err
