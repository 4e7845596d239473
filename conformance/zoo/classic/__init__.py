"""The zoo's part for classic coordinators: bugs, fault-injection environments and error responses."""
