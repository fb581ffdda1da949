import json

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.behaviours import ClickSplits
from cleanrank.experiments.cells import expand, run_cell
from cleanrank.experiments.noises import SPLITS, flip_clicks
from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.results import split
from cleanrank.experiments.sources import identity_of
from cleanrank.experiments.studies import STUDIES, ClickTask
from cleanrank.experiments.studies.ctr import jackknife, plain_tries
from cleanrank.metrics.clicks import auc, evaluate_clicks
from cleanrank.noise.profiles import NoiseProfile
from tests.rankers.ctr.planted import planted

SMALL = {"model": "deepfm", "epochs": 2, "batch_size": 100, "learning_rate": 0.003}


@pytest.fixture(scope="module")
def rows():
    return ClickSplits(planted(800), planted(400, seed=1), planted(400, seed=2))


def studied(rows, grid=(), flips=(0, 0), **params):
    lost, invented = flips
    profile = NoiseProfile([[1 - invented, invented], [lost, 1 - lost]], "flips")
    settings = {**STUDIES["ctr"].params, **SMALL, **params}
    task = ClickTask(rows, rows.train, rows.validation, profile, settings, dict(grid), 1)
    return STUDIES["ctr"].run(task)


def test_the_figures_are_those_of_the_model_that_validation_rows_choose(rows):
    grid = {"learning_rate": [1e-6, 0.003]}
    result = studied(rows, grid)
    assert result.chosen["learning_rate"] == 0.003
    model = cr.CTRModel(**SMALL, random_state=1, n_jobs=1).fit(rows.train, rows.validation)
    wanted = evaluate_clicks(rows.test.y, model.predict_proba(rows.test)[:, 1], rows.test.users)
    assert result.means["auc"] == wanted.auc
    assert result.means["gauc"] == wanted.gauc
    assert result.means["log loss"] == wanted.log_loss
    assert result.means["calibration error"] == wanted.ece
    values = result.values["auc"]
    assert len(values) == len(result.query_ids) == wanted.n_users
    assert values.mean() == pytest.approx(wanted.auc)
    # The spread of pseudo-values is that of DeLong's parts of users.
    reach = 1.96 * values.std(ddof=1) / len(values) ** 0.5
    assert reach == pytest.approx((wanted.auc_interval[1] - wanted.auc_interval[0]) / 2, rel=0.1)


def test_peers_of_weight_0_gain_nothing(rows):
    result = studied(rows, robust="peer", alpha=0.0, base=True)
    assert result.means["gain"] == 0
    assert result.means["base auc"] == result.means["auc"]
    assert (result.values["gain"] == 0).all()
    assert np.isnan(studied(rows).means["gain"])


def test_the_base_gets_as_many_tries(rows):
    result = studied(rows, {"alpha": [0.1, 0.5]}, robust="peer", base=True)
    tries = [
        cr.CTRModel(**SMALL, random_state=seed, n_jobs=1).fit(rows.train, rows.validation)
        for seed in (1, 1001)
    ]
    best = max(tries, key=lambda each: each.model_.validation_value)
    assert result.means["base auc"] == best.score(rows.test)
    assert result.means["gain"] == pytest.approx(result.means["auc"] - result.means["base auc"])
    assert result.chosen["alpha"] in (0.1, 0.5)
    repeated = [{"alpha": a, "restart": r, "lr": lr} for lr in (1, 2) for r in (0, 1) for a in (0.1, 0.5)]
    assert [(each["lr"], each["restart"]) for each in plain_tries(repeated)] == [
        (lr, restart) for lr in (1, 2) for restart in range(4)
    ]


def test_told_the_noise_peers_take_the_sum_of_the_rates(rows):
    result = studied(rows, flips=(0.1, 0.2), robust="peer", noise="true")
    assert result.chosen["alpha"] == pytest.approx(0.3)


def test_popularity_needs_no_training(rows):
    result = studied(rows, model="popularity")
    assert 0.3 < result.means["auc"] < 0.7
    assert result.means["log loss"] < 0.8


def test_jackknife_of_auc_is_delong(rows):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=len(rows.test)) + rows.test.y
    mean, values = jackknife(lambda kept: auc(rows.test.y[kept], scores[kept]), np.arange(len(scores)))
    low, high = evaluate_clicks(rows.test.y, 1 / (1 + np.exp(-scores))).auc_interval
    assert 1.96 * values.std(ddof=1) / len(values) ** 0.5 == pytest.approx((high - low) / 2, rel=0.02)
    assert mean == auc(rows.test.y, scores)


def test_flips_come_at_their_rates_and_grow(rows):
    clean = rows.train, rows.validation
    low, _, profile = flip_clicks("lost", 0.2, clean, SPLITS, 3)
    high, held, _ = flip_clicks("lost", 0.4, clean, ("train",), 3)
    assert profile.matrix.tolist() == [[1, 0], [0.2, 0.8]]
    clicked = rows.train.y == 1
    assert (low.y[~clicked] == 0).all()
    assert (low.y[clicked] == 0).mean() == pytest.approx(0.2, abs=0.06)
    assert (high.y <= low.y).all()
    assert held is rows.validation
    both, _, _ = flip_clicks("flips", 0.3, clean, SPLITS, 3)
    assert (both.y != rows.train.y).mean() == pytest.approx(0.3, abs=0.05)


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    (tmp_path / "ml-100k").mkdir()
    columns = [rng.integers(1, 40, 600), rng.integers(1, 30, 600), rng.integers(1, 6, 600), np.arange(600)]
    np.savetxt(tmp_path / "ml-100k/u.data", np.column_stack(columns), fmt="%d", delimiter="\t")
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))

    def write(**changes):
        lines = {
            "title": '"T"',
            "measures": '["auc", "gauc"]',
            "seeds": "[1]",
            "data": '[{ name = "ml-100k", options = { history = 5 } }]',
            "noise": '[{ profile = "flips", rates = [0.2] }]',
            "methods": '[{ method = "ctr", params = { model = "deepfm", epochs = 1 } }]',
        } | changes
        file = tmp_path / "recipe.toml"
        file.write_text("\n".join(f"{key} = {value}" for key, value in lines.items()))
        return read_recipe(file)

    return write


def test_a_cell_of_a_recipe_runs(recipe):
    (cell,) = expand(recipe(), identity_of)
    header, _ = split(run_cell(cell.text))
    assert header["status"] == "done", header["error"]
    assert set(header["means"]) == {"auc", "gauc"}
    assert header["chosen"]["flipped"] == pytest.approx(0.2, abs=0.1)
    assert json.loads(cell.text)["options"] == {"history": 5}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"methods": '[{ method = "lambdarank" }]', "measures": '["ndcg@10"]'},
            "must be judged rows for lambd",
        ),
        ({"data": '[{ name = "mq2008" }]'}, "must be a log of clicks for ctr"),
        ({"noise": '[{ profile = "uniform", rates = [0.2] }]'}, "must be one of flips, lost, invented"),
        ({"measures": '["ndcg@10"]'}, "unknown measure of this study"),
        ({"data": '[{ name = "ml-100k", options = { relevant = 1 } }]'}, "unknown key 'relevant'"),
    ],
)
def test_recipes_that_do_not_fit(recipe, changes, message):
    with pytest.raises(cr.CleanrankError, match=message):
        recipe(**changes)
