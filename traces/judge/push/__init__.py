"""Traces of the push coordinator, seen by its consumers, judged by the handlers of `model/push`.

The coordinator speaks first here, so the judge follows it: it keeps every state of a group in which the model can have
sent what was seen. Times of single channels, pings and leases, are followed beside that. What a consumer does is not
judged here.
"""
