"""Importers: what others wrote down about groups, as traces. What a source does not show is left out, never guessed."""
