"""Diagnosis of a rejected trace: the response that is wrong, the requirements it violates, and the wording."""
