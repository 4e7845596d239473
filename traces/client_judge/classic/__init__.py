"""What the classic protocol asks of a client: its membership as the client knows it, and a check for each request."""
