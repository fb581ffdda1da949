"""Columns by name, categories by value: the same scores however a table is arranged."""

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.find import DETECTORS, options_of
from cleanrank.rankers._lightgbm import decode_name, encode_name
from cleanrank.rankers.columns import Columns, with_categories

ODD_NAMES = ["price [EUR]", "a,b:c", 'say "x"', "größe", "100%", "{}", "tab\there", "plain", ""]
KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
NOISE = np.eye(3) * 0.85 + 0.05
SMALL = {"n_estimators": 5, "min_child_samples": 5, "num_leaves": 7}


def rankers():
    yield pytest.param(lambda: cr.BoostedRanker(**SMALL), id="boosted")
    yield pytest.param(lambda: cr.SOURRanker(end=5, **SMALL), id="sour")
    yield pytest.param(
        lambda: cr.RobustRanker(noise=[[0.9, 0.1], [0.1, 0.9]], folds=2, rounds=1, n_estimators=3, grid={}),
        id="robust",
    )
    yield pytest.param(lambda: cr.NeuralRanker(epochs=2, network_options={"hidden": (4,)}), id="neural")


@pytest.fixture(scope="module")
def judged():
    """A frame of features, grades and query ids; column "f1" decides."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(240, 4)).astype(np.float32), columns=["f1", "f2", "f 3", "f[4]"])
    y = (frame["f1"] + 0.3 * rng.normal(size=240) > 0).astype(int).to_numpy()
    return frame, y, np.repeat(np.arange(12), 20)


@pytest.mark.parametrize("make", list(rankers()))
def test_columns_are_found_by_name_in_fit_predict_and_score(make, judged, tmp_path):
    frame, y, qid = judged
    backwards = frame[frame.columns[::-1]].assign(more=1.0, text="x")
    ranker = make().fit(frame, y, qid=qid, eval_set=(frame, y), eval_qid=qid)
    other = make().fit(frame, y, qid=qid, eval_set=(backwards, y), eval_qid=qid)
    scores = ranker.predict(frame)
    assert len(set(scores)) > 2
    assert ranker.model_.validation_value == other.model_.validation_value
    assert ranker.evals_result_ == other.evals_result_
    ranker.save(tmp_path / "model")
    for each in (ranker, other, cr.load_ranker(tmp_path / "model")):
        assert each.feature_names_in_.tolist() == list(frame.columns)
        assert each.n_features_in_ == 4
        for kind in KINDS.values():
            np.testing.assert_array_equal(each.predict(kind(backwards)), scores)
        np.testing.assert_array_equal(each.predict(frame.to_numpy()), scores)
        assert each.score(backwards, y, qid=qid) == ranker.score(frame, y, qid=qid)
        with pytest.raises(CleanrankError, match=r"none named 'f2'. Did you mean 'F2'\?"):
            each.predict(backwards.rename(columns={"f2": "F2"}))
        with pytest.raises(CleanrankError, match=r"X has 3 features, but \w+ is expecting 4 features"):
            each.predict(frame.to_numpy()[:, :3])
    with pytest.raises(CleanrankError, match=r"validation data .* none named 'f2' and 1 more"):
        make().fit(frame, y, qid=qid, eval_set=(frame[["f1", "f 3"]], y), eval_qid=qid)


def test_validation_data_are_put_in_order_by_name(judged):
    frame, y, qid = judged
    data = cr.from_frame(frame.assign(label=y, qid=qid))
    held = cr.from_frame(frame[frame.columns[::-1]].assign(label=y, qid=qid))
    one, two = (cr.BoostedRanker(**SMALL).fit_data(data, each).evals_result_ for each in (data, held))
    assert one == two
    assert len(one["valid_0"]["ndcg@10"]) == 5


def test_a_model_of_arrays_reads_frames_by_place_and_has_no_names(judged):
    frame, y, qid = judged
    ranker = cr.BoostedRanker(**SMALL).fit(frame.to_numpy(), y, qid=qid)
    assert not hasattr(ranker, "feature_names_in_")
    assert not hasattr(
        cr.BoostedRanker(**SMALL).fit(pd.DataFrame(frame.to_numpy()), y, qid=qid), "feature_names_in_"
    )
    np.testing.assert_array_equal(ranker.predict(frame), ranker.predict(frame.to_numpy()))
    assert ranker.fit(frame, y, qid=qid).feature_names_in_[0] == "f1"
    assert not hasattr(ranker.fit(frame.to_numpy(), y, qid=qid), "feature_names_in_")


def test_odd_names_survive_lightgbms_text(tmp_path):
    assert [decode_name(encode_name(name)) for name in ODD_NAMES] == ODD_NAMES
    data = cr.make_ranking(20, len(ODD_NAMES), docs_per_query=10, seed=0)
    frame = pd.DataFrame(data.X, columns=ODD_NAMES)
    ranker = cr.BoostedRanker(**SMALL).fit(frame, data.y, qid=data.qid)
    ranker.save(tmp_path / "model.txt")
    loaded = cr.load_ranker(tmp_path / "model.txt")
    assert loaded.feature_names_in_.tolist() == ODD_NAMES
    np.testing.assert_array_equal(loaded.predict(frame[ODD_NAMES[::-1]]), ranker.predict(frame))
    plain = lightgbm.Booster(model_file=str(tmp_path / "model.txt"))
    assert plain.feature_name()[:2] == ["price%20%5BEUR%5D", "a%2Cb%3Ac"]
    np.testing.assert_array_equal(plain.predict(data.X), ranker.predict(frame))


def countries(seed, n=600):
    """Rows whose grade depends on a category that no order of codes can show in one split."""
    rng = np.random.default_rng(seed)
    place = rng.choice(["at", "be", "ch", "de", "es", "fr"], n)
    size = rng.choice([10, 20, 30], n)
    frame = pd.DataFrame(
        {
            "bm25": rng.normal(size=n).astype(np.float32),
            "country": pd.Categorical(np.where(rng.random(n) < 0.05, None, place)),
            "size": pd.Categorical(size),
        }
    )
    y = np.isin(place, ["at", "ch", "es"]).astype(int) + (size == 20)
    return frame, y, np.repeat(np.arange(n // 20), 20)


@pytest.mark.parametrize("kind", KINDS)
def test_categories_are_split_as_such_and_plain_lightgbm_agrees(kind, tmp_path):
    frame, y, qid = countries(0)
    test, _, _ = countries(1)
    if kind == "polars":  # has categories of text alone
        frame["size"], test["size"] = (each["size"].astype(str).astype("category") for each in (frame, test))
    test["country"] = test["country"].cat.set_categories(["fr", "zz", "es", "de", "ch", "be", "at"])
    test.loc[:30, "country"] = "zz"
    ranker = cr.BoostedRanker(**SMALL).fit(KINDS[kind](frame), y, qid=qid)
    assert ranker.score(frame, y, qid=qid) > 0.95
    scores = ranker.predict(test)
    assert len(set(scores)) > 5
    arranged = test[["size", "country", "bm25"]]
    text = test.assign(**{name: test[name].astype(object) for name in ("country", "size")})
    ranker.save(tmp_path / "model.txt")
    for each in (ranker, cr.load_ranker(tmp_path / "model.txt")):
        np.testing.assert_array_equal(each.predict(KINDS[kind](arranged)), scores)
        np.testing.assert_array_equal(each.predict(text), scores)
    plain = lightgbm.Booster(model_file=str(tmp_path / "model.txt"))
    np.testing.assert_array_equal(plain.predict(test), scores)
    places, sizes = plain.pandas_categorical
    assert sorted(places) == ["at", "be", "ch", "de", "es", "fr"]
    assert sorted(sizes) == (["10", "20", "30"] if kind == "polars" else [10, 20, 30])


@pytest.mark.parametrize(
    "make",
    [
        lambda: cr.BoostedRanker(objective="sigmoid", **SMALL),
        lambda: cr.BoostedRanker(implementation="builtin", **SMALL),
        lambda: cr.SOURRanker(variant="fly", patience=1, **SMALL),
        lambda: cr.SOURRanker(variant="curr", ends=[2], **SMALL),
        lambda: cr.RobustRanker(noise=NOISE, folds=2, grid={}, n_estimators=3),
    ],
)
def test_every_ranker_of_trees_takes_categories(make, tmp_path):
    frame, y, qid = countries(0)
    ranker = make().fit(frame, y, qid=qid, eval_set=(frame.iloc[:, ::-1], y), eval_qid=qid)
    ranker.save(tmp_path / "model.txt")
    assert "num_cat=0" not in (tmp_path / "model.txt").read_text().split("Tree=1")[0]
    plain = lightgbm.Booster(model_file=str(tmp_path / "model.txt"))
    np.testing.assert_array_equal(plain.predict(frame), ranker.predict(frame))


@pytest.mark.parametrize("method", sorted(set(DETECTORS) - {"clicks"}))
def test_every_detector_of_features_takes_categories(method):
    frame, y, qid = countries(0, 400)
    data = cr.from_frame(frame.assign(label=y, qid=qid))
    needs = options_of(method)
    options = {name: value for name, value in {"end": 3, "folds": 2, "noise": NOISE}.items() if name in needs}
    assert len(cr.find_label_issues(data, method, **options)) == data.n_docs


def test_codes_of_unseen_values_are_missing():
    frame, y, qid = countries(0)
    ranker = cr.BoostedRanker(**SMALL).fit(frame, y, qid=qid)
    rows = ranker.model_.columns.matrix(
        pd.DataFrame({"size": [30, 40], "country": ["ch", None], "bm25": [0.5, 1.0]})
    )
    np.testing.assert_array_equal(rows, [[0.5, 2, 2], [1.0, np.nan, np.nan]])
    with pytest.raises(CleanrankError, match=r"column 'country' of X must hold text, as in training; got 3"):
        ranker.predict(frame.assign(country=3))
    with pytest.raises(
        CleanrankError, match=r"column 'bm25' of X must hold numbers, as in training; got the cat"
    ):
        ranker.predict(frame.assign(bm25=pd.Categorical(["a"] * len(frame))))


def test_whole_numbers_as_categories_of_a_frame_are_told_from_codes(tmp_path):
    """A frame with fewer categories has other codes; the model's file must say what its own stand for."""
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 4, 400)
    y, qid = np.isin(kind, [0, 2]).astype(int), np.repeat(np.arange(20), 20)
    frame = pd.DataFrame({"x": rng.normal(size=400), "kind": kind})
    few = frame.assign(kind=pd.Categorical(np.where(kind == 1, 3, kind)))
    wanted = []
    for each, settings in (
        (frame.assign(kind=pd.Categorical(kind)), {}),
        (frame, {"categorical_feature": ["kind"]}),
    ):
        ranker = cr.BoostedRanker(**SMALL).fit(each, y, qid=qid, **settings)
        ranker.save(tmp_path / "model.txt")
        loaded, plain = (
            cr.load_ranker(tmp_path / "model.txt"),
            lightgbm.Booster(model_file=tmp_path / "model.txt"),
        )
        wanted.append(ranker.predict(each))
        np.testing.assert_array_equal(plain.predict(each), wanted[-1])
        for model in (ranker, loaded):
            np.testing.assert_array_equal(model.predict(each), wanted[-1])
            np.testing.assert_array_equal(model.predict(frame), wanted[-1])
            numbers = few.assign(kind=few["kind"].astype(int))
            np.testing.assert_array_equal(model.predict(few), model.predict(numbers))
        if not settings:
            np.testing.assert_array_equal(plain.predict(few), ranker.predict(few))
    np.testing.assert_array_equal(*wanted)


@pytest.mark.parametrize(
    "settings",
    [
        ({}, {"categorical_feature": [1]}),
        ({"params": {"categorical_feature": [1]}}, {}),
        ({"params": {"cat_feature": "1"}}, {}),
    ],
)
def test_categorical_feature_by_place_is_used(settings):
    frame, y, qid = countries(0)
    X = np.column_stack([frame["bm25"], frame["country"].cat.codes.replace(-1, 7)])
    params, fit = settings
    plain = cr.BoostedRanker(**SMALL).fit(X, y, qid=qid)
    ranker = cr.BoostedRanker(**SMALL, **params).fit(X, y, qid=qid, **fit)
    assert ranker.score(X, y, qid=qid) > plain.score(X, y, qid=qid)
    assert "num_cat=0" not in ranker.booster_.model_to_string().split("Tree=1")[0]
    assert not hasattr(ranker, "feature_names_in_")
    named = cr.BoostedRanker(**SMALL).fit(
        pd.DataFrame(X, columns=["a", "b"]), y, qid=qid, categorical_feature=["b"]
    )
    np.testing.assert_array_equal(named.predict(X), ranker.predict(X))


def test_wrong_categories_are_named():
    frame, y, qid = countries(0)
    numbers = frame[["bm25"]].assign(size=frame["size"].astype(int))
    for settings, words in (
        ({"categorical_feature": ["sise"]}, "unknown categorical feature 'sise'. Did you mean 'size'"),
        ({"categorical_feature": [2]}, "a categorical feature must be an integer >= 0 and <= 1; got 2"),
        ({"categorical_feature": ["bm25"]}, "categorical feature 'bm25' must hold whole numbers from 0"),
    ):
        with pytest.raises(CleanrankError, match=words):
            cr.BoostedRanker(**SMALL).fit(numbers, y, qid=qid, **settings)
    with pytest.raises(CleanrankError, match=r"NeuralRanker reads numbers alone; got .* 'country'"):
        cr.NeuralRanker(epochs=1).fit(frame, y, qid=qid)
    dates = frame.assign(country=pd.Categorical(pd.to_datetime(["2020-01-01"] * len(frame))))
    with pytest.raises(CleanrankError, match="categories of column 'country' of X must be text or numbers"):
        cr.BoostedRanker(**SMALL).fit(dates, y, qid=qid)


def test_aligned_rows_have_the_codes_of_the_model():
    columns = Columns(2, ("c", "x"), {"c": ("u", "v")})
    data = cr.from_arrays(
        [[1.0, 0.0], [2.0, 1.0], [3.0, np.nan]], [0, 1, 0], qid=[1, 1, 1],
        feature_names=("x", "c"), categories={"c": ("v", "w")},
    )  # fmt: skip
    np.testing.assert_array_equal(columns.align(data, "data").X, [[1, 1], [np.nan, 2], [np.nan, 3]])
    text = cr.from_arrays(
        [[1.0], [2.0]], [0, 1], qid=[1, 1], feature_names=("x",), extra={"c": np.array(["v", None], object)}
    )
    np.testing.assert_array_equal(columns.align(text, "data").X, [[1, 1], [np.nan, 2]])
    sparse = cr.from_arrays(scipy.sparse.csr_matrix([[0.0, 1.0]]), [0], qid=[1], feature_names=("a", "b"))
    assert Columns(2, ("b", "a")).align(sparse, "data").X.toarray().tolist() == [[1.0, 0.0]]
    assert with_categories(data, ["c"]).categories == data.categories
    with pytest.raises(CleanrankError, match=r"feature_names must be different; got 'a' twice"):
        Columns.of(cr.from_arrays([[0.0, 1.0]], [0], qid=[1], feature_names=("a", "a")))


def test_columns_of_text_are_not_learnt_from_and_this_is_said():
    data = cr.make_ranking(20, 3, docs_per_query=10, seed=0)
    frame = pd.DataFrame(np.asarray(data.X), columns=list("abc")).assign(country="us")
    with pytest.warns(UserWarning, match="not learnt from: country"):
        ranker = cr.BoostedRanker(n_estimators=3).fit(frame, data.y, qid=data.qid)
    assert list(ranker.feature_names_in_) == ["a", "b", "c"]
