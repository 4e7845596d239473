"""Known bugs of clients, of their assignors and of their fetchers, put back into the reference client."""
