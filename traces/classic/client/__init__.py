"""The judge of clients of the classic protocol: the membership as a client knows it, and a check for each request."""
