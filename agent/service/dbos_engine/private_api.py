"""The three uses of DBOS beyond its public interface; `test_private_api.py` fails when they change.

Recovery of a dead worker's tasks is otherwise part of the paid conductor. DBOS has no limit for one worker over
several queues and cannot close a queue for a while: the settings of a queue are the same for all workers.
"""

import copy
import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

from dbos import DBOS

ClaimLimit: TypeAlias = Callable[[str], int | None]
_NO_ROOM = "worker_concurrency"
_QUEUE_THREADS = "queue-worker-"
_JOIN_S = 10.0


def take_over(worker_ids: Sequence[str]) -> int:
    """Put the tasks of dead workers back into their queues; return their number.

    A task that another worker has claimed meanwhile stays with it; repeated calls are safe.
    """
    return len(DBOS._recover_pending_workflows(list(worker_ids)))


def limit_claims(dbos: DBOS, room: ClaimLimit, on_claim: Callable[[str, Sequence[str]], None]) -> None:
    """Call `room` before every claim for the number of tasks that may be claimed: None for no limit, 0 for none.

    The number applies to the same claim, unlike the settings of a queue, which are read before the polling interval.
    """
    system_database = dbos._sys_db
    claim = system_database.start_queued_workflows
    # DBOS has one thread per queue, and all of them share the limit.
    lock = threading.Lock()

    def limited(queue, executor_id, app_version, partition, running=0, *rest, **options):  # type: ignore[no-untyped-def]
        with lock:
            limit = room(queue.name)
            if limit is None:
                return claim(queue, executor_id, app_version, partition, running, *rest, **options)
            if limit <= 0:
                return [], _NO_ROOM
            narrowed = copy.copy(queue)
            narrowed._worker_concurrency = limit
            claimed, reason = claim(narrowed, executor_id, app_version, partition, 0, *rest, **options)
            on_claim(queue.name, claimed)
            return claimed, reason

    system_database.start_queued_workflows = limited  # type: ignore[method-assign, assignment]


def stop_claims(dbos: DBOS) -> None:
    """End the threads that claim tasks. DBOS would stop its event loop first, in which a task claimed late starts."""
    for event in dbos.background_thread_stop_events:
        event.set()
    for thread in threading.enumerate():
        if thread.name.startswith(_QUEUE_THREADS):
            thread.join(_JOIN_S)
