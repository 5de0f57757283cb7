"""Commands that inspect or test without a run: doctor, rules test, single calls."""
