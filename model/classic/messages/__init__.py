"""Requests and responses of the classic protocol as values, and how message bodies are read into them.

Byte layouts live in `model/wire`.
"""
