"""HTML to Markdown: what a reader sees of a page."""
