"""Diagrams of schedules: a trace in, a sequence diagram out, as Mermaid text or as inline SVG.

What is drawn is decided in `sequence`; `mermaid` and `svg` only write it down.
"""
