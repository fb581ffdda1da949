import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cleanrank.errors import BadFileError, CleanrankError, UnknownNameError
from cleanrank.experiments.recipe import (
    Data,
    Noise,
    RecipeMethod,
    all_recipes,
    find_recipe,
    known_recipes,
    read_recipe,
    recipe_name,
)
from tests.experiments.toys import RECIPE

REPOSITORY = Path(__file__).parents[2]


def test_a_recipe_becomes_typed_values(small_recipe):
    recipe = read_recipe(small_recipe)
    assert recipe.name == "toys/small"
    assert recipe.command == "cleanrank reproduce recipes/toys/small.toml"
    assert recipe.data == (
        Data("synthetic", "synthetic", (1, 2), {"n_queries": 40, "n_features": 8, "docs_per_query": 8.0}),
    )
    assert recipe.noise == (Noise("uniform", (0.0, 0.3), ("train", "validation")),)
    assert recipe.methods[1] == RecipeMethod("random", "chance", {}, {})
    assert recipe.methods[0].params["norm"] is True
    assert recipe.methods[0].params["rounds"] == 5
    assert recipe.methods[0].params["num_leaves"] == 31
    assert recipe.measures == recipe.show == ("ndcg@10", "map:letor")
    assert (recipe.select, recipe.seeds, recipe.baseline) == ("ndcg@10", (1, 2), "norm on")


def test_quick_keeps_a_part_of_the_whole(small_recipe):
    quick = read_recipe(small_recipe).reduced()
    assert (quick.data[0].folds, quick.seeds, quick.noise[0].rates) == ((1,), (1,), (0.0, 0.3))


def published(dataset="synthetic", method="norm on", measure="ndcg@10", value=0.5, **more):
    """The start of [quick] with a published figure before it."""
    figure = {"dataset": dataset, "method": method, "measure": measure, "value": value, "source": "x", **more}
    return "[[published]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in figure.items()) + "[quick]"


GRID = "feature_fraction = 0.7 }\ngrid = "
MISTAKES = [
    ("n_queries = 40", "n_queries = 1000000000", r"data\[0\].options must give data that fit into memory"),
    ('title = "A small grid"', "title = 3", r"small\.toml: title must be text; got 3"),
    ('title = "A small grid"\n', "", r"small\.toml: title must be given"),
    (
        "seeds = [1, 2]",
        "seed = [1, 2]",
        r"small\.toml: unknown key 'seed'\. Did you mean 'seeds'\? Known: title",
    ),
    ("seeds = [1, 2]", "seeds = [1, -2]", r"seeds\[1\] must be a whole number >= 0; got -2"),
    (
        "seeds = [1, 2]",
        "seeds = [1, 2147483648]",
        r"seeds\[1\] must be a whole number <= 2147483647; got 2147483648",
    ),
    ("seeds = [1, 2]", "seeds = [1, 1]", "seeds must not repeat"),
    ("seeds = [1, 2]", "seeds = []", r"seeds must be a list of length >= 1; got \[\]"),
    ("seeds = [1, 2]", "seeds = 1, 2", "must be valid TOML.*line 4"),
    ('"ndcg@10", "map', '"ndgc@10", "map', r"measures: unknown measure 'ndgc'\. Did you mean 'ndcg'"),
    ("map:letor", "map:leter", "measures: unknown .*'leter'.*Did you mean 'letor'"),
    (
        'baseline = "norm on"',
        'baseline = "norm off"',
        "baseline: unknown method label 'norm off'. Did you mean 'norm on'",
    ),
    (
        'name = "synthetic"',
        'name = "syntetic"',
        r"data\[0\]\.name: unknown data set 'syntetic'\. Did you mean 'synthetic'",
    ),
    ('name = "synthetic"', 'name = "mq2080"', r"unknown data set 'mq2080'\. Did you mean 'mq200[78]'"),
    (
        'name = "synthetic"\nfolds = [1, 2]\noptions',
        'name = "mq2008"\nfolds = [1]\noptions',
        r"data\[0\]\.options: unknown key 'n_queries'. Known: relevant",
    ),
    ("folds = [1, 2]", "folds = [0]", r"data\[0\]\.folds must be an integer >= 1; got 0"),
    ("n_queries = 40", 'n_queries = "40"', r"data\[0\]\.options\.n_queries must be a whole number; got '40'"),
    ("n_queries", "queries", r"data\[0\]\.options: unknown key 'queries'\. Did you mean 'n_queries'"),
    (
        'profile = "uniform"',
        'profile = "uniforn"',
        r"noise\[0\]\.profile: unknown noise profile 'uniforn'\. Did you mean",
    ),
    (
        "rates = [0.0, 0.3]",
        "rates = [0.0, 1.3]",
        r"noise\[0\]\.rates\[1\] must be a number <= 1\.0; got 1\.3",
    ),
    ("rates = [0.0, 0.3]", 'rates = [0.0, "a"]', r"noise\[0\]\.rates\[1\] must be a number; got 'a'"),
    (
        "rates = [0.0, 0.3]",
        'rates = [0.3]\non = ["test"]',
        r"noise\[0\]\.on: unknown split 'test'\. Known: train, validation",
    ),
    (
        'method = "lambdarank"',
        'method = "lambdrank"',
        r"methods\[0\]\.method: unknown method 'lambdrank'\. Did you mean",
    ),
    ("rounds = 5", "rounds = 5.5", r"methods\[0\]\.params\.rounds must be a whole number; got 5\.5"),
    ("rounds = 5", "rounds = 5.0", r"methods\[0\]\.params\.rounds must be a whole number; got 5\.0"),
    ("rounds = 5", "rounds = true", r"methods\[0\]\.params\.rounds must be a whole number; got True"),
    ("feature_fraction = 0.7", "feature_fraction = true", r"feature_fraction must be a number; got True"),
    ("feature_fraction = 0.7", "feature_fraction = inf", "feature_fraction must be a finite number; got inf"),
    ('label = "chance"', "label = 3", r"methods\[1\]\.label must be text; got 3"),
    ('method = "random"', "", r"methods\[1\]\.method must be given"),
    ("rates = [0.0, 0.3]", "rates = 0.3", r"noise\[0\]\.rates must be a list; got 0\.3"),
    ("rates = [0.0, 0.3]", "rates = [0, 0.0]", r"noise\[0\]\.rates must not repeat an entry; got 0\.0"),
    ("norm = true", "norm = 1", r"methods\[0\]\.params\.norm must be true or false; got 1"),
    ("rounds = 5", "round = 5", r"methods\[0\]\.params: unknown key 'round'\. Did you mean 'rounds'"),
    ('label = "chance"', 'label = "norm on"', "labels of methods must not repeat an entry; got 'norm on'"),
    (
        'method = "random"',
        'method = "random"\n[[methods]]\nlabel = "b"\nmethod = "random"',
        r"methods\[2\] must differ from 'chance'",
    ),
    ('method = "random"', 'method = "random"\nparams = { a = 1 }', r"methods\[1\]\.params: unknown key 'a'"),
    ("feature_fraction = 0.7 }", GRID + "{ rounds = [1, 2] }", r"grid\.rounds must not be given both"),
    (
        "feature_fraction = 0.7 }",
        GRID + "{ num_leaves = [7, 7.5] }",
        r"grid\.num_leaves\[1\] must be a whole",
    ),
    ("feature_fraction = 0.7 }", GRID + "{ leaves = [7] }", r"grid: unknown key 'leaves'"),
    (
        'method = "random"',
        'method = "outliers"\ngrid = { start = [0, 5] }',
        r"methods\[1\]\.grid goes with methods and the studies ctr, curve, breakdown; got outliers",
    ),
    ("[quick]", "[quick]\nmethods = 1", r"quick: unknown key 'methods'"),
    (
        "[quick]",
        published(measure="ndcg@5"),
        r"published\[0\]\.measure: unknown measure of this recipe 'ndcg@5'",
    ),
    ("[quick]", published(dataset="other"), r"published\[0\]\.dataset: unknown data set of this recipe"),
    ("[quick]", published(method="SVM"), r"published\[0\]\.method: unknown method label 'SVM'"),
    ("[quick]", published(value="high"), r"published\[0\]\.value must be a number; got \'high\'"),
    ("[quick]", published(fold=3), r"published\[0\]\.fold must be among 1, 2; got 3"),
    ("[quick]", published(rate=0.2), r"published\[0\]\.rate must be among the rates .*; got 0\.2"),
    (
        "[quick]",
        published(rate=0.3, noise="adjacent"),
        r"published\[0\]\.rate must be among the rates .*; got 0\.3",
    ),
    ("[quick]", published(fold=1.5), r"published\[0\]\.fold must be a whole number or text; got 1\.5"),
    ("[quick]", published(noise="unifrm"), r"published\[0\]\.noise: unknown noise profile 'unifrm'"),
    ("[quick]", published(page=3), r"published\[0\]: unknown key 'page'"),
    ("[quick]", published(decimals=-1), r"published\[0\]\.decimals must not be negative; got -1"),
    ("seeds = [1]", "seeds = [3]", r"quick\.seeds must be a part of the whole recipe's; got 3"),
    ("seeds = [1]", "rates = [0.2]", r"quick\.rates must be a part of the whole recipe's; got 0\.2"),
    ("folds = [1]", "folds = [3]", r"quick\.folds must be a part of the whole recipe's; got 3"),
    ("rounds = 5", "learning_rate = nan", r"params\.learning_rate must be a finite number; got nan"),
    ("[[data]]", "[data]", "data must be a list"),
    ("seeds = [1, 2]", 'seeds = [1, 2]\nname = "x"', r"small\.toml: unknown key 'name'"),
    (
        "feature_fraction = 0.7 }",
        GRID + "{ num_leaves = [7, 7] }",
        r"grid\.num_leaves must not repeat an entry; got 7",
    ),
    ("[quick]", "[quik]", "unknown key 'quik'. Did you mean 'quick'"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_mistakes_say_what_and_where(tmp_path, old, new, message):
    assert old in RECIPE
    path = tmp_path / "small.toml"
    path.write_text(RECIPE.replace(old, new))
    with pytest.raises(CleanrankError) as caught:
        read_recipe(path)
    assert re.search(message, str(caught.value)), str(caught.value)


def test_whole_numbers_become_the_numbers_that_parameters_are(small_recipe):
    text = RECIPE.replace("feature_fraction = 0.7 }", "lambda_l2 = 1 }\ngrid = { learning_rate = [1, 2] }")
    small_recipe.write_text(text)
    method = read_recipe(small_recipe).methods[0]
    assert [type(v) for v in (method.params["lambda_l2"], *method.grid["learning_rate"])] == [float] * 3


def test_binary_rubbish_is_no_recipe(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CleanrankError, match=r"bad\.toml must be valid TOML"):
        read_recipe(path)


def test_context_may_name_other_rankers(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(
        RECIPE
        + '[[published]]\ndataset = "synthetic"\nmethod = "RankSVM"\nmeasure = "ndcg@10"\nvalue = 0.5\n'
        'source = "a table"\ncontext = true\n'
    )
    (figure,) = read_recipe(path).published
    assert (figure.method, figure.context, figure.value) == ("RankSVM", True, 0.5)


def test_recipes_are_found_by_path_and_by_name(small_recipe, monkeypatch):
    monkeypatch.chdir(small_recipe.parents[2])
    assert find_recipe(str(small_recipe)) == small_recipe
    assert read_recipe(find_recipe("toys/small")).name == "toys/small"
    with pytest.raises(
        UnknownNameError, match=r"no recipe 'toys/smal'.*Did you mean toys/small\?.*cleanrank recipes"
    ):
        find_recipe("toys/smal")
    with pytest.raises(
        UnknownNameError, match=rf"Looked for 'nothing', recipes/ here and '{REPOSITORY}/recipes'"
    ):
        find_recipe("nothing")
    with pytest.raises(UnknownNameError, match="Did you mean niu/ties or niu/adjacent or niu/balance"):
        find_recipe("niu")


def test_shipped_recipes_are_found_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shipped = REPOSITORY / "recipes" / "noise" / "quick.toml"
    assert find_recipe("noise/quick") == find_recipe("recipes/noise/quick.toml") == shipped
    assert len(known_recipes()) == len(SHIPPED)


def test_a_recipe_needs_no_comment(small_recipe):
    small_recipe.write_text(small_recipe.read_text().partition("\n")[2])
    assert read_recipe(small_recipe).command == f"cleanrank reproduce {small_recipe}"


def test_brackets_nested_too_deep_are_refused(tmp_path):
    (tmp_path / "a.toml").write_text("a = " + "[" * 5000)
    with pytest.raises(BadFileError, match="brackets nested too deep"):
        read_recipe(tmp_path / "a.toml")


SHIPPED = all_recipes(REPOSITORY / "recipes")


@pytest.mark.parametrize("path", SHIPPED, ids=recipe_name)
def test_shipped_recipes_open_with_their_own_command(path):
    recipe = read_recipe(path)
    assert recipe.command == f"cleanrank reproduce {path.relative_to(REPOSITORY).as_posix()}"
    assert recipe.title
    single = len(recipe.seeds) == 1 and all(len(data.folds) == 1 for data in recipe.data)
    assert single or recipe.quick.folds or recipe.quick.seeds


def test_there_are_recipes():
    assert {recipe_name(p) for p in SHIPPED} >= {"baselines/letor", "noise/quick"}


def as_study(measures='["dnoise", "pnoise"]', more=""):
    head = RECIPE.split("[[methods]]")[0].replace('["ndcg@10", "map:letor"]', measures)
    return head.replace('baseline = "norm on"\n', "") + '[[methods]]\nmethod = "label_noise"\n' + more


def test_a_study_brings_its_own_measures(small_recipe):
    small_recipe.write_text(as_study())
    recipe = read_recipe(small_recipe)
    assert recipe.measures == ("dnoise", "pnoise")
    assert recipe.methods == (RecipeMethod("label_noise", "label_noise", {}, {}),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (as_study('["ndcg@10"]'), r"small\.toml: measures: unknown measure of this study 'ndcg@10'"),
        (
            as_study(more='[[methods]]\nmethod = "random"\n'),
            "methods must all rank, or all be studies; got 1 of 2",
        ),
    ],
)
def test_studies_and_rankings_do_not_mix(small_recipe, text, message):
    small_recipe.write_text(text)
    with pytest.raises(CleanrankError, match=message):
        read_recipe(small_recipe)


def test_a_derived_set_is_named_and_checked(small_recipe):
    small_recipe.write_text(RECIPE.replace('name = "synthetic"', 'name = "synthetic"\nderived = "MSLR2G"'))
    (data,) = read_recipe(small_recipe).data
    assert (data.derived, data.label) == ("MSLR2G", "MSLR2G")
    small_recipe.write_text(RECIPE.replace('name = "synthetic"', 'name = "synthetic"\nderived = "MSLR3G"'))
    with pytest.raises(CleanrankError, match=r"derived: unknown derived set 'MSLR3G'.*MSLR2G"):
        read_recipe(small_recipe)


def test_quick_keeps_levels_by_noise_and_rate(tmp_path):
    text = RECIPE.replace("rates = [0.0, 0.3]", "rates = [0.1, 0.3]").replace(
        "[[methods]]",
        '[[noise]]\nprofile = "missed"\nrates = [0.3]\n\n'
        '[[noise]]\nprofile = "clicks"\nrates = [0.1]\n\n[[methods]]',
        1,
    )
    path = tmp_path / "levels.toml"
    path.write_text(text + 'levels = ["uniform 0.3", "clicks 0.1"]\n')
    kept = read_recipe(path).reduced().noise
    assert [(n.profile, n.rates) for n in kept] == [("uniform", (0.3,)), ("clicks", (0.1,))]
    path.write_text(text + 'levels = ["uniform 0.2"]\n')
    with pytest.raises(CleanrankError, match=r"levels must be a part of the whole recipe's; got uniform 0.2"):
        read_recipe(path)


def test_reading_recipes_imports_nothing_heavy():
    heavy = ["torch", "lightgbm", "numba", "sklearn", "scipy", "pandas", "joblib"]
    code = f"import sys, cleanrank.experiments.recipe; print([m for m in {heavy} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
