"""Work that takes long, in threads of its own, so that nobody who answers waits for it."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from cleanrank.errors import CleanrankError
from cleanrank.web.security import LOG


@dataclass(frozen=True)
class Outcome:
    """What came of some work: its value, or why there is none; and the version of what it was made from."""

    version: Hashable
    value: Any = None
    problem: str = ""


class Background:
    """Work by name: one at a time of each name, the last outcome kept.

    >>> background = Background()
    >>> background.latest("sum", version=1, work=lambda: 1 + 2) is None
    True
    >>> background.wait(); background.latest("sum", version=1, work=lambda: 1 + 2).value
    3
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, threading.Thread] = {}
        self._outcomes: dict[str, Outcome] = {}

    def latest(self, name: str, version: Hashable, work: Callable[[], Any]) -> Outcome | None:
        """The last outcome, None if there is none yet; work is started if that has another version."""
        found = self.outcome(name)
        if found is None or found.version != version:
            self.start(name, work, version)
        return found

    def start(self, name: str, work: Callable[[], Any], version: Hashable = None) -> bool:
        """Starts work; False, and nothing is started, where work of this name is under way."""
        with self._lock:
            if name in self._running:
                return False
            # A daemon: whoever stops the server does not wait for a page that nobody will see.
            thread = threading.Thread(target=self._run, args=(name, work, version), name=name, daemon=True)
            self._running[name] = thread
        thread.start()
        return True

    def is_running(self, name: str) -> bool:
        """Whether work of this name is under way."""
        with self._lock:
            return name in self._running

    def outcome(self, name: str) -> Outcome | None:
        """What came of the last work of this name that has ended."""
        with self._lock:
            return self._outcomes.get(name)

    def wait(self) -> None:
        """Waits until nothing is under way."""
        with self._lock:
            threads = list(self._running.values())
        for thread in threads:
            thread.join()

    def _run(self, name: str, work: Callable[[], Any], version: Hashable) -> None:
        outcome = Outcome(version, problem="The server failed at this; its log says why.")
        try:
            outcome = Outcome(version, work())
        except CleanrankError as error:
            LOG.warning("%s: %s", name, error)
            outcome = Outcome(version, problem=str(error))
        finally:
            with self._lock:
                self._outcomes[name] = outcome
                del self._running[name]
