"""A pool of containers in which executors run tasks."""
