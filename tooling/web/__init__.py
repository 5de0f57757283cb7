"""Web access for tools: address checks, HTTP, documents, HTML, search."""
