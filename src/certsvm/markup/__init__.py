"""HTML and SVG, for reports and notebooks: text is escaped, and nothing is fetched."""
