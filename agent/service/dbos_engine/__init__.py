"""The task queue on DBOS Transact: SQLite on one machine, PostgreSQL on many."""
