"""Traces and the judge: what was seen on a target, held against what the model allows.

Traces come in from adapters, importers and files; verdicts and explanations go out. Nothing here talks to
a target: where a run is needed, it is handed in as a function.
"""
