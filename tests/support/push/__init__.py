"""Push coordinators with a fault each, put in from outside."""
