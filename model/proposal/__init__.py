"""The proposal of client-side assignment, as far as it differs from what was built."""
