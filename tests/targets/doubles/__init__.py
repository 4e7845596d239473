"""Small brokers that each do one thing that a broker of somebody else was seen to do, made from the bundled server."""
