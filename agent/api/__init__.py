"""The HTTP API and the page of `agent serve`."""
