"""HTTP: client, cache, connections pinned to checked addresses."""
