import pytest

from cleanrank.cli.wording import in_options

OPTIONS = dict.fromkeys(("rate", "label", "features", "trees", "option"), True) | {"allow-unanswered": False}


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
    ],
)
def test_arguments_become_options(python, worded):
    assert in_options(python, OPTIONS) == worded
    assert in_options(python, {}) == python
