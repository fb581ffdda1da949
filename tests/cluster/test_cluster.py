import socket
import threading
from functools import partial

import distributed
import numpy as np
import pytest

import cleanrank as cr
from cleanrank.cluster import client as in_use
from cleanrank.cluster import tasks
from cleanrank.cluster import together as jointly
from cleanrank.cluster.client import at_scheduler, cluster_in_use, connected, is_on_cluster, on_cluster
from cleanrank.cluster.tasks import each
from cleanrank.cluster.together import together
from cleanrank.errors import InvalidInputError, LostWorkerError
from tests.cluster import clusters
from tests.cluster.clusters import local_cluster


@pytest.fixture(scope="module")
def client():
    with local_cluster() as client:
        yield client


def test_without_a_client_tasks_are_computed_here():
    assert not is_on_cluster()
    with on_cluster(None):
        assert not is_on_cluster()
        assert list(each(pow, [2], [(3,), (4,)])) == [8, 16]


def test_tasks_are_shared_out_and_come_back_in_their_order(client):
    seen = []
    with on_cluster(client):
        found = list(each(clusters.process_of, [], [(k,) for k in range(6)], lambda *step: seen.append(step)))
        assert list(each(pow, [2], [(k,) for k in range(9)])) == [2**k for k in range(9)]
    assert not is_on_cluster()
    assert set(found) == set(client.run(lambda: __import__("os").getpid()).values())
    assert seen == [(k, 6) for k in range(1, 7)]


def test_features_are_sent_once_and_let_go(client):
    data = cr.make_ranking(20, 4, docs_per_query=5, seed=0)
    other = data.with_labels(np.zeros(data.n_docs, dtype=int))
    with on_cluster(client):
        for rows in (data, other):
            assert list(each(clusters.total, [rows, 2.0], [(1.0,), (2.0,)])) == [
                clusters.total(rows, 2.0, more) for more in (1.0, 2.0)
            ]
        current = cluster_in_use()
        assert len(current._placed) == 1
    assert not current._placed


def test_an_error_of_a_task_is_the_callers(client):
    with on_cluster(client), pytest.raises(ValueError, match="no luck"):
        list(each(clusters.fails, [], [(1,), (2,)]))


def test_workers_work_together_each_on_its_part(client):
    seen = []

    def parts(n):
        return [partial(list, part) for part in np.array_split(np.arange(5), n)]

    with on_cluster(client):
        found = together(clusters.share, parts, [10], progress=lambda *step: seen.append(step))
        assert [place for _, place, _ in found] == [0, 1]
        assert [value for part, _, _ in found for value in part] == [10, 11, 12, 13, 14]
        assert [threads for _, _, threads in found] == [1, 1]
        assert seen == [(1, 1)]
        assert together(clusters.share, lambda n: parts(1), [0], n_jobs=3) == [([0, 1, 2, 3, 4], 0, 3)]


def test_an_error_of_one_of_those_together_is_the_callers(client):
    with on_cluster(client), pytest.raises(ValueError, match="no luck"):
        together(clusters.one_fails, lambda n: [partial(int, k) for k in range(n)], [])


@pytest.mark.parametrize(
    ("value", "words"),
    [("tcp://a:1", r"client must be a distributed.Client; got str. As in client="), (3, "int")],
)
def test_what_is_no_client_is_refused(value, words):
    with pytest.raises(InvalidInputError, match=words), on_cluster(value):
        pass


def test_a_closed_client_is_refused(client):
    other = distributed.Client(client.scheduler.address, set_as_default=False)
    other.close()
    with (
        pytest.raises(InvalidInputError, match="client must be connected to a cluster; got status 'closed'"),
        on_cluster(other),
    ):
        pass


def test_a_cluster_is_found_by_its_address(client):
    with at_scheduler(client.scheduler.address) as other:
        assert other.nthreads() == client.nthreads()
    with at_scheduler(None) as none:
        assert none is None


def test_an_address_without_a_cluster_is_refused(monkeypatch):
    monkeypatch.setattr(in_use, "CONNECT_SECONDS", 0.2)
    with pytest.raises(InvalidInputError, match="scheduler must be the address of a running Dask cluster"):
        connected("tcp://127.0.0.1:1")


@pytest.mark.slow
def test_tasks_of_a_lost_worker_are_computed_elsewhere(tmp_path):
    with local_cluster() as client, on_cluster(client):
        for number in range(1, 6):
            (tmp_path / str(number)).write_text("")
        assert list(each(clusters.slowly, [tmp_path], [(k,) for k in range(6)])) == list(range(6))


@pytest.mark.slow
def test_a_task_that_kills_its_workers_ends_in_a_clear_error(monkeypatch):
    monkeypatch.setattr(tasks, "POLL_SECONDS", 0.2)
    words = "must keep the workers that compute its tasks .1 of 1 are not done.; got KilledWorker"
    with distributed_config(), local_cluster() as client:
        with on_cluster(client), pytest.raises(LostWorkerError, match=words):
            list(each(clusters.dies, [], [(1,)]))
        client.wait_for_workers(2)
        with (
            on_cluster(client),
            pytest.warns(UserWarning, match="training starts again on those left"),
            pytest.raises(LostWorkerError, match="while they train together; 3 times it did not"),
        ):
            together(clusters.dies_together, lambda n: [partial(int, 0)] * n, [])


def distributed_config():
    import dask

    return dask.config.set({"distributed.scheduler.allowed-failures": 1})


def test_native_code_that_waits_in_a_connection_is_cut_off():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as waiting:
            peer, _ = server.accept()
            ended = []

            def read():
                while True:  # as LightGBM, which takes the end of a stream for a short read
                    try:
                        waiting.recv(10)
                    except OSError as error:
                        ended.append(error)
                        return

            thread = threading.Thread(target=read, daemon=True)
            thread.start()
            jointly._cut_off([port])
            thread.join(timeout=5)
            peer.close()
    assert len(ended) == 1
