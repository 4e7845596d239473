"""Reports with diagrams: a Markdown summary and a self-contained HTML page, both from the report alone."""
