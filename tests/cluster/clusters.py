"""Dask clusters of this machine for tests, and tasks for their workers."""

import contextlib
import logging
import os
import time

from distributed import Client, LocalCluster


@contextlib.contextmanager
def local_cluster(workers=2, **options):
    """A client of a cluster of processes, one thread each."""
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            **options,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
        client.wait_for_workers(workers, timeout=60)  # a cluster closes badly while a worker starts


def process_of(_):
    time.sleep(0.3)
    return os.getpid()


def total(data, factor, more):
    return factor * float(data.X.sum()) + more


def fails(_):
    raise ValueError("no luck")


def dies(_):
    os._exit(7)


def slowly(mark, number):
    """The number; of one that is not marked yet the worker is killed in the middle."""
    path = mark / str(number)
    if not path.exists():
        path.write_text("")
        time.sleep(0.2)
        os._exit(9)
    return number


def share(part, network, offset):
    report = network.progress()
    if report is not None:
        report(1, 1)
    return [value + offset for value in part], network.place, network.threads


def one_fails(part, network):
    if network.place == 1:
        raise ValueError("no luck")
    time.sleep(0.1)
    return part


def dies_together(part, network):
    os._exit(9)
