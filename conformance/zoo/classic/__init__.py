"""What the zoo knows of classic coordinators: their bugs, environments and error responses."""
