import pandas as pd
import pytest

from cleanrank.data.event_files import is_log_file, usual_columns
from cleanrank.data.events import read_events
from cleanrank.errors import BadFileError, InvalidInputError, UnknownNameError


@pytest.fixture
def log(tmp_path):
    frame = pd.DataFrame(
        {"user": [1, 2], "item": [3, 4], "category": [1, 1], "timestamp": [5, 6], "brand": 7}
    )
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_csv(tmp_path / "log.tsv", index=False, sep="\t")
    frame.assign(behaviour="pv").to_parquet(tmp_path / "did.parquet")
    return tmp_path


@pytest.mark.parametrize("name", ["log.csv", "log.tsv"])
def test_usual_columns_are_known_by_their_names(log, name):
    options, unread = usual_columns(log / name, {})
    assert (options["time"], options["item_fields"], unread) == ("timestamp", ["category"], ["brand"])
    assert len(read_events(log / name, **options)) == 2
    options, unread = usual_columns(log / name, {"item_fields": ["brand"], "time": None})
    assert (options["time"], unread) == (None, ["category", "timestamp"])


def test_behaviours_need_a_meaning(log):
    with pytest.raises(InvalidInputError, match="clicks= must name the behaviours in column 'behaviour'"):
        usual_columns(log / "did.parquet", {})
    assert usual_columns(log / "did.parquet", {"clicks": ["pv"]})[0]["behaviour"] == "behaviour"
    assert usual_columns(log / "did.parquet", {"behaviour": None})[1] == ["brand", "behaviour"]


def test_a_file_is_told_from_a_name(log, monkeypatch):
    monkeypatch.chdir(log)
    (log / "ml-100k").mkdir()
    assert not is_log_file("ml-100k")
    assert is_log_file("missing.csv")
    (log / "bare").write_text("user")
    assert is_log_file("bare")


def test_wrong_files_are_refused_by_name(log):
    with pytest.raises(BadFileError, match=r"log.csv.*there is no column 'uid' \(user=NAME\)"):
        read_events(log / "log.csv", user="uid", time=None)
    (log / "broken.parquet").write_bytes(b"no parquet")
    with pytest.raises(BadFileError, match="cannot be read as a log of events"):
        usual_columns(log / "broken.parquet", {})
    frame = pd.DataFrame({"user": [1], "item": [2]})
    with pytest.raises(UnknownNameError, match=r"there is no column 'time' \(time=NAME\)"):
        read_events(frame)
