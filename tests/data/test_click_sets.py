"""Logs of the catalogue: the official layouts in small files, and the real ones where they are."""

import json

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.data.click_sets import load_clicks
from cleanrank.data.popularity import ItemPopularity
from cleanrank.errors import BadFileError, InvalidInputError, MissingDataError
from cleanrank.metrics.clicks import auc, compare_auc


def many(seed, n=400):
    random = np.random.default_rng(seed)
    return pd.DataFrame({"user": random.integers(20, size=n), "item": random.integers(50, size=n)}), random


def write_taobao(folder):
    log, random = many(0)
    log["category"] = log["item"] % 5
    log["did"] = random.choice(["pv", "buy", "cart", "fav"], p=[0.85, 0.05, 0.05, 0.05], size=len(log))
    log["time"] = random.integers(1_511_539_200, 1_512_316_800, size=len(log))
    folder.mkdir()
    log.to_csv(folder / "UserBehavior.csv", header=False, index=False)
    return log


def test_taobao(tmp_path):
    log = write_taobao(tmp_path / "taobao")
    splits = cr.load_dataset("taobao", root=tmp_path)
    assert isinstance(splits, cr.ClickSplits)
    assert splits.report["events of other behaviours"] == (log["did"] != "pv").sum()
    assert splits.train.layout.item.keys() == {"item", "category"}
    local = pd.to_datetime(splits.train.times, unit="s")  # as clocks in China show
    assert local.min() >= pd.Timestamp("2017-11-25")
    assert (splits.train.context[:, 0] == (local.day_of_week >= 5) + 1).all()
    assert len(cr.load_dataset("taobao", root=tmp_path, part="test")) == len(splits.test)
    ubr = cr.load_dataset("taobao", root=tmp_path, protocol="ubr")
    assert ubr.test.y.mean() == 0.5
    assert splits.train.y.sum() <= 10 * 20
    everything = cr.load_dataset("taobao", root=tmp_path, targets=None)
    assert len(everything.train) > len(splits.train)


def test_an_unknown_behaviour_of_taobao_is_an_error(tmp_path):
    write_taobao(tmp_path / "taobao")
    with (tmp_path / "taobao/UserBehavior.csv").open("a") as file:
        file.write("1,2,3,view,1511544070\n")
    with pytest.raises(
        BadFileError, match=r"UserBehavior.csv': behaviours of the log must be one of pv.*'view'"
    ):
        load_clicks("taobao", tmp_path)


def test_tmall_and_its_table_of_users(tmp_path):
    log, random = many(1)
    folder = tmp_path / "tmall"
    folder.mkdir()
    days = random.choice([511, 630, 701, 1031, 1111, 1112], size=len(log))
    table = {"user_id": log["user"], "item_id": log["item"], "cat_id": log["item"] % 3}
    table |= {"seller_id": log["item"] % 7, "brand_id": log["item"] % 11}
    table |= {"time_stamp": days, "action_type": random.integers(4, size=len(log))}
    pd.DataFrame(table).to_csv(folder / "user_log_format1.csv", index=False)
    users = pd.DataFrame(
        {"user_id": range(1, 20), "age_range": np.arange(19) % 3, "gender": np.arange(19) % 2}
    )
    users.to_csv(folder / "user_info_format1.csv", index=False)
    splits = load_clicks("tmall", tmp_path)
    assert list(splits.train.layout.user) == ["user", "age_range", "gender"]
    assert list(splits.train.layout.item) == ["item", "cat_id", "seller_id", "brand_id"]
    assert splits.report["users that are not in user_info_format1.csv"] == 1
    assert set(pd.to_datetime(splits.train.times, unit="s").year) == {2015}
    season, half = splits.train.context.T
    months = pd.to_datetime(splits.train.times, unit="s")
    assert (season == months.quarter).all()
    assert (half == (months.day > 15) + 1).all()


def test_alipay(tmp_path):
    log, random = many(2)
    folder = tmp_path / "alipay"
    folder.mkdir()
    table = {
        "use_ID": log["user"],
        "sel_ID": log["item"] % 7,
        "ite_ID": log["item"],
        "cat_ID": log["item"] % 3,
    }
    table |= {
        "act_ID": random.integers(2, size=len(log)),
        "time": random.choice([20150701, 20151105], len(log)),
    }
    frame = pd.DataFrame(table)
    frame["time"] += np.arange(len(frame)) % 20
    frame.to_csv(folder / "ijcai2016_taobao.csv", index=False)
    splits = load_clicks("alipay", tmp_path, protocol="ubr")
    assert splits.report["events of other behaviours"] == frame["act_ID"].sum()
    assert list(splits.test.layout.item) == ["item", "cat_ID", "sel_ID"]
    frame["time"] = 20151301
    frame.to_csv(folder / "ijcai2016_taobao.csv", index=False)
    with pytest.raises(BadFileError, match="has a date that is none"):
        load_clicks("alipay", tmp_path)
    frame.drop(columns="act_ID").to_csv(folder / "ijcai2016_taobao.csv", index=False)
    with pytest.raises(BadFileError, match="there is no column 'act_ID'"):
        load_clicks("alipay", tmp_path)


def test_sessions_are_put_together_again(tmp_path):
    folder = tmp_path / "tmall-sessions"
    folder.mkdir()
    random = np.random.default_rng(0)
    train = [random.integers(1, 30, size=random.integers(2, 9)).tolist() for _ in range(60)]
    tests = [random.integers(1, 30, size=random.integers(2, 9)).tolist() for _ in range(9)]
    prefixes = [[each[:end], each[end]] for each in tests for end in range(len(each) - 1, 0, -1)]
    for name, lines in (("train_sessions", train), ("test_prefix_target", prefixes)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    splits = load_clicks("tmall", tmp_path, repeats=True, rare=1, validation=0.25)
    assert splits.report["validation sessions"] == 15
    assert splits.test.y.sum() == len(prefixes)
    assert sorted(splits.test.lengths) == sorted(len(prefix) for prefix, _ in prefixes)
    assert splits.train.y.sum() + splits.validation.y.sum() == sum(len(each) - 1 for each in train)
    (folder / "test_prefix_target.jsonl").write_text("[[1, 2]]\n")
    with pytest.raises(BadFileError, match="line 1, is no JSON of sessions"):
        load_clicks("tmall", tmp_path)


def test_sets_of_another_kind_and_sets_that_are_not_there(tmp_path, data_root):
    with pytest.raises(MissingDataError, match="alipay is not on this machine"):
        cr.load_dataset("alipay", root=tmp_path)
    with pytest.raises(InvalidInputError, match=r"load_clicks\('mq2008'\) needs a log of clicks, one of"):
        load_clicks("mq2008", data_root)


@pytest.mark.data
def test_movielens(data_root):
    splits = cr.load_dataset("ml-100k", root=data_root)
    assert splits.report["events read"] == 100_000
    assert splits.report["events"] == 55_375  # ratings of 4 and 5
    assert list(splits.train.layout.user) == ["user", "age", "gender", "occupation"]
    assert list(splits.train.layout.item) == ["item", "genre", "year"]
    popularity, test = ItemPopularity.fit(splits.train), splits.test
    known = splits.train.times.max()
    assert known < test.times.min()
    scores = popularity.predict(test)
    assert 0.75 < auc(test.y, scores) < 0.85
    margin = compare_auc(test.y, scores, np.zeros(len(test)), test.users)
    assert margin.interval[0] > 0.28
    shown = cr.load_dataset("ml-100k", root=data_root, shown=True)
    assert sum(len(part) for part in shown) + 1939 == 100_000


@pytest.mark.data
def test_tmall_sessions_have_the_published_samples(data_root):
    splits = cr.load_dataset("tmall", root=data_root, repeats=True)
    assert splits.train.y.sum() + splits.validation.y.sum() == 351_268
    assert splits.test.y.sum() == 25_898


@pytest.mark.data
def test_the_taobao_sample(data_root):
    splits = cr.load_dataset("taobao", root=data_root, protocol="ubr")
    assert [len(part) for part in splits] == [86, 86, 86]
    assert splits.report["events"] == 3926
