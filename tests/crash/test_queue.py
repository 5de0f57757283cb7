"""A queue with workers that are killed, stopped, or lose their database: everything is done, and once."""

import os
import random
import signal
import time
from collections.abc import Iterator

import pytest

from tests.cli.terminal_user import User
from tests.crash.queue_campaign import Campaign
from tests.postgres_server import PostgresServer, run_postgres

pytestmark = pytest.mark.slow
# In `make soak`.
MANY_KILLS = 100
LIMIT_S = 240


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with run_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def campaign(request: pytest.FixtureRequest, user: User) -> Iterator[Campaign]:
    url = request.getfixturevalue("postgres").new_database() if request.param == "postgres" else ""
    made = Campaign(user=user, url=url)
    yield made
    for worker in made.running:
        if worker.poll() is None:
            os.kill(worker.pid, signal.SIGCONT)
            worker.kill()
            worker.wait()


def test_workers_that_are_killed_lose_and_repeat_nothing(campaign: Campaign, kills: int) -> None:
    is_full = kills > MANY_KILLS
    ids = campaign.submit(300 if is_full else 8)
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    campaign.run(random.Random(seed), max_kills=kills if is_full else 3, limit_s=3600 if is_full else LIMIT_S)
    campaign.check(ids)
    print(f"{len(ids)} tasks, {campaign.kills} kills")
    assert campaign.kills


def test_a_database_that_crashes_stops_nothing_for_good(user: User, postgres: PostgresServer, kills: int) -> None:
    campaign = Campaign(user=user, url=postgres.new_database(), workers=2)
    ids = campaign.submit(count := 300 if kills > MANY_KILLS else 6)
    campaign.start_workers()
    campaign.wait_until_all_are_alive(LIMIT_S)
    campaign.wait_until_one_has_started(LIMIT_S)
    started = tuple(campaign.running)
    postgres.stop("immediate")
    time.sleep(7)
    postgres.start()
    # Work that begins after the crash, when the workers have noticed that their leases had ended.
    time.sleep(3)
    ids += campaign.submit(2, first=count)
    campaign.run(random.Random(0), max_kills=0, limit_s=3600 if kills > MANY_KILLS else LIMIT_S)
    campaign.check(ids)
    # Their leases had ended meanwhile, but nobody was there to take over.
    assert tuple(campaign.running) == started


def test_a_worker_that_was_stopped_for_long_changes_nothing(user: User, postgres: PostgresServer) -> None:
    campaign = Campaign(user=user, url=postgres.new_database(), workers=1)
    ids = campaign.submit(4)
    campaign.start_workers()
    [zombie] = campaign.running
    # Stopped before that, it would have no lease to lose.
    campaign.wait_until_one_has_started(LIMIT_S)
    os.kill(zombie.pid, signal.SIGSTOP)
    # Its lease ends, and another worker takes over.
    campaign.running = [campaign.start_worker()]
    campaign.run(random.Random(0), max_kills=0, limit_s=LIMIT_S)
    os.kill(zombie.pid, signal.SIGCONT)
    zombie.wait(120)
    campaign.check(ids)
