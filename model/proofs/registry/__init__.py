"""The registry of all theorems with their scopes, and their results as text."""
