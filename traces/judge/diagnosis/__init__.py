"""Diagnosis: which response is wrong, which requirements it violates, and the words for it."""
