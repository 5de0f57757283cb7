"""HTTP: client, cache and connections pinned to checked addresses."""
