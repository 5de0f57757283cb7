"""HTML to Markdown: the visible content of a page."""
