"""Traces and the judge: observations of a target, compared with the behaviours that the model allows.

Traces come from adapters, importers and files; the results are verdicts and diagnoses. Nothing here talks to a
target: code that needs a run takes a function that makes one.
"""
