"""`python -m bench.mind [NAME...]`: measure how the model is used, print a table, exit with 1 if a limit is missed."""

import sys

from bench.__main__ import run_benches
from bench.measure import Bench
from bench.mind import session
from bench.program import BenchError
from bench.start import first_word

BENCHES = (
    Bench(name="requests", run=session.requests_per_task),
    Bench(name="first-word", run=first_word.first_byte),
    Bench(name="session", run=session.long_session),
    Bench(name="follow-up", run=session.follow_up),
)

if __name__ == "__main__":
    try:
        sys.exit(run_benches(BENCHES, program="python -m bench.mind", description=__doc__))
    except BenchError as failure:
        sys.exit(f"error: {failure}")
