"""The site of the documentation: the pages under `docs`, generated reference pages, and the kit's own diagrams.

`python -m docs.generator -o site` builds it. Nothing that it generates is committed, and the product never imports it.
"""
